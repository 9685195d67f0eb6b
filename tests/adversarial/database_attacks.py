"""Attacks on databases before they were allowed."""

from __future__ import annotations

from tests.adversarial.registry import Attack

ROWS: tuple[Attack, ...] = ()
