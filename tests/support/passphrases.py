"""Vaults whose passphrases cost little: what a guess costs a person's is tested in tests/vault."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vault.keys import Cost


@contextmanager
def cheap_passphrases() -> Iterator[None]:
    """Meanwhile new passphrases are stretched at the lowest cost that a vault accepts, and ever after at that."""
    usual = Cost.__init__.__kwdefaults__
    Cost.__init__.__kwdefaults__ = {**usual, "passes": 1, "memory": 8 * 1024, "lanes": 1}
    try:
        yield
    finally:
        Cost.__init__.__kwdefaults__ = usual
