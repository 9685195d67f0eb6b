"""Run by test_keyring.py on a session bus of its own: do things with the keyring, print what came of each as JSON."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from policies.accounts import Account, Origin
from policies.errors import GoexError
from vault import keyring_client
from vault.errors import KeyringKeyMissing, WrongKey
from vault.keys import Cost, KeyringProtector, PassphraseProtector
from vault.secret import Secret
from vault.store import Vault

CHEAP = Cost(passes=1, memory=8 * 1024, lanes=1)


def whole(protector: KeyringProtector) -> None:
    """Make, fill, seal, unlock, rotate, and change from one protector to the other and back."""
    path = Path(tempfile.mkdtemp()) / "vault.db"
    account = Account(
        service="slack", name="w", origins=(Origin.parse("https://a.example"),), base_url="https://a.example"
    )
    vault = Vault.create(path, protector, Secret("an approval phrase"), approval_cost=CHEAP)
    vault.put(account, Secret("token"))
    first = vault._unsealed.wrapping.parameters  # type: ignore[union-attr]
    vault.rotate()
    vault.seal()
    again = Vault.open(path)
    assert again.keyed_by == "keyring"
    again.unlock(protector)
    again.rotate(protector)
    try:
        protector.recall(first)
    except KeyringKeyMissing:
        pass
    else:
        raise AssertionError("the old wrapping key stayed in the keyring")
    stolen = path.read_bytes()
    second = again._unsealed.wrapping.parameters  # type: ignore[union-attr]
    again.rotate(PassphraseProtector(Secret("a pass phrase"), cost=CHEAP))
    again.seal()
    again.unlock(PassphraseProtector(Secret("a pass phrase"), cost=CHEAP))
    assert again.keyed_by == "passphrase"
    again.rotate(protector)
    again.seal()
    again.unlock(protector)
    assert again.resolve("slack") == account
    current = path.read_bytes()
    again.seal()
    path.write_bytes(stolen)
    try:
        Vault.open(path).unlock(protector)
    except KeyringKeyMissing:
        pass
    else:
        raise AssertionError("a copy from before the rotation still opens")
    assert second
    path.write_bytes(current)
    Vault.open(path).unlock(protector)
    other = Path(tempfile.mkdtemp()) / "vault.db"
    Vault.create(other, protector, Secret("an approval phrase"), approval_cost=CHEAP).seal()
    wrapping = protector.establish()
    from vault.aead import Unopened
    from vault.header import Header

    header: Header = Vault.open(other)._header
    try:
        header.open_master(wrapping.key)
    except Unopened:
        pass
    else:
        raise AssertionError(WrongKey)


def done(what: str, timeout: float) -> dict[str, object]:
    protector = KeyringProtector(timeout=timeout)
    begun = time.monotonic()
    found = {"error": "", "exit": "", "message": "", "next": ""}
    try:
        match what:
            case "whole":
                whole(protector)
            case "establish":
                protector.establish()
            case "look":
                found["name"] = keyring_client.look("goex", "doctor", timeout=timeout)
            case "missing":
                protector.recall({"entry": "00" * 16})
    except GoexError as error:
        found = {
            "error": type(error).__name__,
            "exit": error.exit_status.name,
            "message": error.message,
            "next": error.next_step,
        }
    return {**found, "took": time.monotonic() - begun}


def main() -> None:
    timeout = float(sys.argv[1])
    for what in sys.argv[2:]:
        print(json.dumps(done(what, timeout)))


if __name__ == "__main__":
    main()
