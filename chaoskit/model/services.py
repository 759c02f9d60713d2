"""What the services are to whoever reads a history: by their names."""

STORES = ("redis", "postgres", "files")
"""Those that keep the agent's state."""
EFFECTS = ("tools", "mcp", "smtp")
"""Those that apply effects."""
MAIL = "send"
"""The operation of a mail, which names no tool."""
