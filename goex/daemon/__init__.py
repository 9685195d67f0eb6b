"""The daemon: two sockets in front of one engine."""
