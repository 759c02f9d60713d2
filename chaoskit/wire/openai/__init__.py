"""OpenAI's two APIs, Chat Completions and Responses: bytes <-> meaning."""
