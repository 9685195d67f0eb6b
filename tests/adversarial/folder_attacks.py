"""Attacks on folders and their names."""

from __future__ import annotations

from tests.adversarial.registry import Attack

ROWS: tuple[Attack, ...] = ()
