"""Lives in containers; `launcher` says how, and what each disk is."""
