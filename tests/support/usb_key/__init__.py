"""Loaded by a command that a test gives a security key of software."""
