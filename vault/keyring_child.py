"""The child process that alone touches the keyring: one request on stdin, JSON lines on stdout, then it ends.

Rules: only backends known to keep secrets are used, chosen by their exact class; of a chain the first such member is
used directly, never the chain. An answer names the exception's type, never its text, which may hold anything. The
line `waiting` says that a person is being asked to unlock, so that a time-out can be told from a hang.

Started as `python -I -m vault.keyring_child SECONDS`; ends itself after that time, should its parent be gone.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from vault.hardening import harden_process

SECURE = {  # with what each is called
    "keyring.backends.SecretService.Keyring": "Secret Service",
    "keyring.backends.libsecret.Keyring": "Secret Service (by libsecret)",
    "keyring.backends.kwallet.DBusKeyring": "KWallet",
    "keyring.backends.kwallet.DBusKeyringKWallet4": "KWallet 4",
    "keyring.backends.macOS.Keyring": "Keychain",
    "keyring.backends.Windows.WinVaultKeyring": "Windows Credential Locker",
}
_CHAIN = "keyring.backends.chainer.ChainerBackend"
_FAIL = "keyring.backends.fail.Keyring"
_NULL = "keyring.backends.null.Keyring"
_ON_DBUS = "keyring.backends.SecretService.Keyring"

_LOCKED = frozenset({"KeyringLocked", "LockedException", "PromptDismissedException"})
_ABSENT = frozenset(
    {"InitError", "NoKeyringError", "SecretServiceNotAvailableException", "DBusErrorResponse", "ConnectionResetError"}
)


class Refused(Exception):
    """No backend will be used. `status` and `backend` go to the parent."""

    def __init__(self, status: str, backend: str) -> None:
        super().__init__(status)
        self.status = status
        self.backend = backend


def name_of(backend: object) -> str:
    """The full name of a backend's class."""
    return f"{type(backend).__module__}.{type(backend).__qualname__}"


def choose(backend: Any) -> Any:
    """The backend to use: `backend` itself, or the first secure member of a chain. Raises Refused."""
    members = list(backend.backends) if name_of(backend) == _CHAIN else [backend]
    for member in members:
        if name_of(member) in SECURE:
            return member
    for member in members:
        if name_of(member) == _NULL or name_of(member).startswith("keyrings.alt."):
            raise Refused("plaintext", name_of(member))
    for member in members:
        if name_of(member) != _FAIL:
            raise Refused("unknown", name_of(member))
    raise Refused("absent", name_of(backend))


def say(status: str, **facts: str) -> None:
    """One line to the parent."""
    sys.stdout.write(json.dumps({"status": status, **facts}) + "\n")
    sys.stdout.flush()


def serve(request: dict[str, str], backend: Any) -> None:
    """Do what was asked for, with a backend that was chosen."""
    where = (request["service"], request["user"])
    match request["verb"]:
        case "store":
            backend.set_password(*where, request["key"])
            say("ok")
        case "fetch":
            found = backend.get_password(*where)
            if found is None:
                say("missing")
            else:
                say("ok", key=found)
        case "delete":
            if backend.get_password(*where) is None:
                say("missing")
            else:
                backend.delete_password(*where)
                say("ok")
        case "look":
            backend.get_password(*where)
            say("ok", backend=SECURE[name_of(backend)])
        case verb:
            say("failed", detail=f"no such verb {verb}")


def _warn_when_locked(backend: Any) -> None:
    """Say so before a call that will wait for a person."""
    if name_of(backend) != _ON_DBUS:
        return
    import secretstorage

    bus = secretstorage.dbus_init()
    try:
        try:
            locked = secretstorage.Collection(bus, "/org/freedesktop/secrets/aliases/default").is_locked()
        except secretstorage.exceptions.ItemNotFoundException:
            locked = True  # there is no default collection yet: making one asks for its new password
        if locked:
            say("waiting")
    finally:
        bus.close()


def main() -> None:
    """Serve one request."""
    harden_process()
    if hasattr(signal, "alarm"):
        signal.alarm(int(sys.argv[1]))
    request = json.loads(sys.stdin.buffer.read())
    say("begun")
    name = "?"
    try:
        import keyring

        try:
            found = keyring.get_keyring()
        except Exception as error:  # noqa: BLE001 - a configured backend that can't be loaded may raise anything
            say("absent", detail=type(error).__name__)
            return
        name = name_of(found)
        backend = choose(found)
        name = name_of(backend)
        _warn_when_locked(backend)
        serve(request, backend)
    except Refused as refused:
        say(refused.status, backend=refused.backend)
    except Exception as error:  # noqa: BLE001 - whatever a backend raises becomes a status
        kind = type(error).__name__
        status = "locked" if kind in _LOCKED else "absent" if kind in _ABSENT else "failed"
        say(status, backend=name, detail=kind)


if __name__ == "__main__":
    main()
