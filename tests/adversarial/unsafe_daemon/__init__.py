"""Loaded by a daemon that a control starts: each file takes one defence away."""
