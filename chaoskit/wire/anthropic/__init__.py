"""Anthropic's Messages API: bytes <-> meaning."""
