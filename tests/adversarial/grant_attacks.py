"""Attacks on grants, rules and prompts."""

from __future__ import annotations

from tests.adversarial.registry import Attack

ROWS: tuple[Attack, ...] = ()
