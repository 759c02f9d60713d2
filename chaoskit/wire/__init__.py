"""Layer 1: bytes to messages and back, with no sockets and no waiting.

Each protocol has its own file: what a request says, whether it is whole and valid, and
what an answer looks like. A service in `chaoskit.world` reads and writes bytes, asks
the gate, and leaves the words to this package.
"""
