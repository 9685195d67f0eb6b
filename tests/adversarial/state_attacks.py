"""Attacks on the daemon's files on disk."""

from __future__ import annotations

from tests.adversarial.registry import Attack

ROWS: tuple[Attack, ...] = ()
