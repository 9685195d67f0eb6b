"""Loaded by a daemon that a test kills at a point of its work."""
