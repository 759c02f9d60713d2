"""Pytest runs inside pytest, each in a process and a folder of its own."""

pytest_plugins = ["pytester"]
