"""HTTP for the services: a server for each life, on sockets of that life alone.

A service hands over one function, from a whole request to a reply. `Dropped` resets
the connection without a word; a reply that knows its crossing can be cut inside. A
client that hangs up does not stop the function: a message that is past the gate is
applied, whoever still listens.
"""

from chaoskit.world.http.lives import HttpLives
from chaoskit.world.http.message import Answer, Handler, Reply, Request, Streamed

__all__ = ["Answer", "Handler", "HttpLives", "Reply", "Request", "Streamed"]
