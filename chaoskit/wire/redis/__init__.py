"""The Redis protocol, RESP2 and RESP3, and what its commands mean to the gate."""
