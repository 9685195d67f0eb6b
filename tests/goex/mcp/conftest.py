"""One daemon for each file of these tests, with a service of notes that is connected."""

from __future__ import annotations

from tests.acceptance.conftest import daemon, folder

__all__ = ["daemon", "folder"]
