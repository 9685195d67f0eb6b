"""GoEx: the daemon, its engine and journal, and the clients that speak to it."""

__version__ = "0.1.0"
