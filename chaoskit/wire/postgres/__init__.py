"""PostgreSQL's wire protocol 3.0, and what its messages mean to the gate."""
