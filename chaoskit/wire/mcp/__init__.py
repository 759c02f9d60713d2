"""The Model Context Protocol over streamable HTTP: bytes <-> meaning."""
