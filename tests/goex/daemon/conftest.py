"""One daemon for each file of these tests, and a folder of an ordinary user's."""

from tests.acceptance.conftest import daemon, folder

__all__ = ["daemon", "folder"]
