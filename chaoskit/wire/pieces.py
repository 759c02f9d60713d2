"""The pieces of a reply that is sent in one go."""


def halves(reply: bytes) -> tuple[bytes, bytes]:
    """Where it is cut: in its middle."""
    middle = len(reply) // 2
    return reply[:middle], reply[middle:]
