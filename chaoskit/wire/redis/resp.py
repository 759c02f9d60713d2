"""The Redis protocol, cut into whole messages by `requests` and `replies`.

A relay passes bytes on as they are, so it has to know the edges of every message.
Parsers of the protocol give values and lose the bytes; these modules keep the bytes. No
sockets here: feed bytes, take messages. Feeding one byte at a time gives the same as
feeding all at once.

The grammar: https://redis.io/docs/latest/develop/reference/protocol-spec/
"""

import re

END = b"\r\n"
COUNT = re.compile(rb"-?\d{1,10}")


class WireError(Exception):
    """The bytes are not the Redis protocol; the text is a server's words for it."""
