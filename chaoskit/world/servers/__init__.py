"""Servers of the world: where the user may name one of his own, and what if none is.

A store needs a real server. It is one that the user names by a variable, or one that
chaoskit starts from what is installed; each store's ``server`` module sees to that.
What such servers have in common is here.
"""

REDIS_URL_VARIABLE = "CHAOSKIT_REDIS_URL"
DATABASE_URL_VARIABLE = "CHAOSKIT_DATABASE_URL"


class MissingServer(Exception):
    """No server can be had; the text says why, and what to do about it."""
