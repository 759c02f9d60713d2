"""The Redis service: a relay, with the gate in it, in front of a real server.

Operations are the write commands, in lower case, with their first key; a transaction
that writes is the one operation ``exec`` (see `chaoskit.wire.redis.commands`). Edges:
``before`` (the command is whole, the server has not seen it), ``after`` (the server has
done it, the reply is withheld) and ``part:1`` (half of the reply is sent). What else
the agent says to the server is not counted: reads, connection set-up, blocking
commands, pub/sub.
"""

from chaoskit.world.redis.service import Redis

__all__ = ["Redis"]
