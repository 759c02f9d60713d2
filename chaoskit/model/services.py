"""What the services are to whoever reads a history: by their names."""

STORES = ("redis", "postgres", "files")
"""Those that keep the agent's state."""
_OF_STORE = {"sqlite": "files"}
EFFECTS = ("tools", "mcp", "smtp")
"""Those that apply effects."""
MAIL = "send"
"""The operation of a mail, which names no tool."""


def store_service(store: str) -> str | None:
    """The service that an agent's state crosses to, by the manifest's `store`."""
    service = _OF_STORE.get(store, store)
    return service if service in STORES else None
