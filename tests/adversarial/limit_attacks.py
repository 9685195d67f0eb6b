"""Attacks on limits on time, memory and disk."""

from __future__ import annotations

from tests.adversarial.registry import Attack

ROWS: tuple[Attack, ...] = ()
