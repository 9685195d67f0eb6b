"""Loaded by a daemon that a control starts: it runs without the defences that are named."""
