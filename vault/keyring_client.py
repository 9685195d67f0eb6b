"""Ask the desktop's keyring, from a distance.

Rules: a keyring call can block for ever and loads code that we don't know, so each runs in a child process
(`vault.keyring_child`) with a time-out, and is killed with everything that it started when it hangs. The key goes
through pipes; nothing secret is in the child's arguments or environment. What the child answers is parsed strictly.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import Any

from policies.display_text import escape, shorten
from policies.errors import GoexError
from vault.aead import KEY_BYTES
from vault.errors import (
    KeyringAbsent,
    KeyringError,
    KeyringHung,
    KeyringKeyMissing,
    KeyringLocked,
    KeyringPlaintext,
    KeyringUnknown,
)
from vault.secret import Secret

_OTHERWISE = "or key the vault with a passphrase: goex vault init --passphrase, or goex vault rotate --passphrase"
_UNLOCK = "Log in to the desktop or unlock its keyring there, then run: goex vault unlock."


def store(service: str, user: str, key: Secret, *, timeout: float) -> None:
    """Keep `key` in the keyring, and read it back. Raises KeyringError."""
    _ask({"verb": "store", "service": service, "user": user, "key": key.reveal().hex()}, timeout)
    if fetch(service, user, timeout=timeout) != key:
        raise KeyringError("The keyring didn't keep the key that it was given.", next_step=f"Mend it, {_OTHERWISE}")


def fetch(service: str, user: str, *, timeout: float) -> Secret:
    """The key that `store` kept. Raises KeyringError, KeyringKeyMissing when the keyring doesn't hold it."""
    try:
        key = Secret(bytes.fromhex(_ask({"verb": "fetch", "service": service, "user": user}, timeout)["key"]))
    except (KeyError, TypeError, ValueError):
        key = Secret(b"")
    if len(key) != KEY_BYTES:
        raise KeyringKeyMissing(
            "The keyring's entry for this vault isn't a key: something else wrote there.",
            next_step="Restore the keyring from a backup.",
        )
    return key


def delete(service: str, user: str, *, timeout: float) -> None:
    """Forget the key. No error when it isn't there. Raises KeyringError."""
    with contextlib.suppress(KeyringKeyMissing):
        _ask({"verb": "delete", "service": service, "user": user}, timeout)


def look(service: str, user: str, *, timeout: float) -> str:
    """What the keyring that would be used is called; it was asked for an entry. Raises KeyringError."""
    found = _ask({"verb": "look", "service": service, "user": user}, timeout)
    return shorten(escape(str(found.get("backend", "?"))), 100)[0]


def _ask(request: dict[str, str], timeout: float) -> dict[str, Any]:
    try:
        child = subprocess.Popen(
            [sys.executable, "-I", "-m", "vault.keyring_child", str(int(timeout) + 5)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
    except OSError as error:
        raise KeyringError(f"The keyring's helper process can't be started: {error.strerror}.") from None
    with child:
        try:
            answer, _ = child.communicate(json.dumps(request).encode(), timeout=timeout)
            hung = False
        except subprocess.TimeoutExpired as expired:
            answer = expired.stdout or b""  # what came so far; reading on could block on an escaped grandchild
            hung = True
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
    lines = _parse(answer)
    last = lines[-1] if lines else {}
    if hung and last.get("status") in ("begun", "waiting", None):
        raise _timed_out(last, timeout)
    if last.get("status") != "ok":
        raise _refused(last)
    return last


def _parse(answer: bytes) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for line in answer.splitlines():
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                lines.append(value)
    return lines


def _timed_out(last: dict[str, Any], timeout: float) -> GoexError:
    if last.get("status") == "waiting":
        return KeyringLocked(
            f"The keyring is locked, and wasn't unlocked within {timeout:g} seconds.", next_step=_UNLOCK
        )
    return KeyringHung(
        f"The keyring didn't answer within {timeout:g} seconds.",
        next_step=f"Restart the keyring service, {_OTHERWISE}",
    )


def _refused(last: dict[str, Any]) -> GoexError:
    backend = shorten(escape(str(last.get("backend", "?"))), 100)[0]
    detail = shorten(escape(str(last.get("detail", ""))), 100)[0]
    match last.get("status"):
        case "absent":
            return KeyringAbsent(
                "There is no keyring service here" + (f" ({detail})." if detail else "."),
                next_step=f"Start one (gnome-keyring or KWallet, in a session with D-Bus), {_OTHERWISE}",
            )
        case "locked":
            return KeyringLocked("The keyring is locked.", next_step=_UNLOCK)
        case "plaintext":
            return KeyringPlaintext(
                f"The configured keyring ({backend}) would keep the key in a plain file, or nowhere.",
                next_step=f"Configure a real keyring, {_OTHERWISE}",
            )
        case "unknown":
            return KeyringUnknown(
                f"The configured keyring ({backend}) isn't one that is known to keep secrets.",
                next_step=f"Configure Secret Service, KWallet, or the system's own, {_OTHERWISE}",
            )
        case "missing":
            return KeyringKeyMissing(
                "The keyring doesn't hold this vault's key.",
                next_step="Log in to the desktop session in which the vault was made, or restore the keyring.",
            )
    return KeyringError(
        f"The keyring ({backend}) failed" + (f": {detail}." if detail else "."), next_step=f"Mend it, {_OTHERWISE}"
    )
