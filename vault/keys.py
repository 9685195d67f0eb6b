"""Who keeps the key to the vault: a person's memory (passphrase) or the desktop's keyring.

Rules: a protector yields a *wrapping*, the key that wraps the vault's master key, together with the parameters that
the vault's header keeps in clear to find it again. Parameters read from a header are an attacker's until the wrapped
key opens: they are bounds-checked before anything is spent on them. A passphrase isn't kept: the wrapping is.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from argon2.exceptions import HashingError
from argon2.low_level import ARGON2_VERSION, Type, hash_secret_raw

from policies.errors import InvalidInput, Unavailable
from policies.jsonvalue import JsonObject, JsonValue
from vault import keyring_client
from vault.aead import KEY_BYTES, Random, new_key
from vault.errors import VaultBroken
from vault.secret import Secret

KeyedBy = Literal["keyring", "passphrase"]

SALT_BYTES = 16
SHORTEST_PASSPHRASE = 8
_LONGEST_PASSPHRASE = 1024
_RING_SERVICE = "goex"


def _nothing() -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapping:
    """The key that wraps the master key. `parameters` go to the header, `key` never leaves memory.

    `discard` removes what the protector keeps outside of the vault for it (a keyring entry); it may raise
    KeyringError.
    """

    keyed_by: KeyedBy
    parameters: JsonObject
    key: Secret
    discard: Callable[[], None] = field(default=_nothing, repr=False)


class Protector(Protocol):
    """One way to keep the key. Both calls may take seconds: don't make them on an event loop."""

    @property
    def keyed_by(self) -> KeyedBy: ...

    def establish(self) -> Wrapping:
        """A new wrapping, with new parameters."""
        ...

    def recall(self, parameters: JsonObject) -> Wrapping:
        """The wrapping of these parameters. Raises VaultBroken when they are out of bounds."""
        ...

    def rests_on(self, matches: Callable[[Secret], bool]) -> bool:
        """Whether it rests on a passphrase, and on one that matches."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one guess of a passphrase costs (Argon2id): passes, KiB of memory, lanes."""

    passes: int = 3
    memory: int = 64 * 1024
    lanes: int = 4

    def __post_init__(self) -> None:
        if not (1 <= self.passes <= 16 and 8 * 1024 <= self.memory <= 1024 * 1024 and 1 <= self.lanes <= 16):
            raise InvalidInput("Argon2id takes 1-16 passes, 8 MiB to 1 GiB of memory and 1-16 lanes here.")


def stretch(passphrase: Secret, salt: bytes, cost: Cost) -> Secret:
    """Argon2id: 32 bytes from a passphrase. Raises Unavailable when the memory isn't there."""
    try:
        return Secret(
            hash_secret_raw(
                normal_passphrase(passphrase).reveal(),
                salt,
                time_cost=cost.passes,
                memory_cost=cost.memory,
                parallelism=cost.lanes,
                hash_len=KEY_BYTES,
                type=Type.ID,
                version=ARGON2_VERSION,
            )
        )
    except (HashingError, MemoryError):
        raise Unavailable(
            f"Argon2id couldn't get its {cost.memory // 1024} MiB of memory.", next_step="Free some memory, then retry."
        ) from None


def stretch_parameters(salt: bytes, cost: Cost) -> dict[str, JsonValue]:
    """What must be kept to stretch the same passphrase to the same key again."""
    return {
        "kdf": "argon2id",
        "version": ARGON2_VERSION,
        "passes": cost.passes,
        "memory": cost.memory,
        "lanes": cost.lanes,
        "salt": salt.hex(),
    }


def read_stretch_parameters(parameters: JsonObject) -> tuple[bytes, Cost]:
    """Parse what `stretch_parameters` made. Raises VaultBroken when anything is odd or out of bounds."""
    broken = VaultBroken(
        "The vault's header asks for impossible passphrase parameters.",
        next_step="Restore vault.db from a backup.",
    )
    try:
        numbers = [parameters[name] for name in ("passes", "memory", "lanes")]
        if any(type(number) is not int for number in numbers):
            raise broken
        salt = bytes.fromhex(parameters["salt"])
        cost = Cost(passes=numbers[0], memory=numbers[1], lanes=numbers[2])
        known = parameters["kdf"] == "argon2id" and parameters["version"] == ARGON2_VERSION
    except (KeyError, TypeError, ValueError, InvalidInput):
        raise broken from None
    if not known or len(salt) != SALT_BYTES or len(parameters) != 6:
        raise broken
    return salt, cost


def normal_passphrase(passphrase: Secret) -> Secret:
    """One spelling for one passphrase: keyboards differ in how they compose an accented letter (NFC).

    Raises InvalidInput when it isn't text.
    """
    try:
        return Secret(unicodedata.normalize("NFC", passphrase.reveal().decode("utf-8")))
    except UnicodeDecodeError:
        raise InvalidInput("A passphrase must be text (UTF-8).") from None


def check_passphrase(passphrase: Secret, what: str) -> None:
    """Refuse what a guesser tries first. Raises InvalidInput; `what` names the passphrase in the message."""
    count = len(normal_passphrase(passphrase).reveal().decode("utf-8"))
    if count < SHORTEST_PASSPHRASE:
        raise InvalidInput(
            f"The {what} is too short.", next_step=f"Use at least {SHORTEST_PASSPHRASE} characters, better four words."
        )
    if count > _LONGEST_PASSPHRASE:
        raise InvalidInput(f"The {what} is too long: at most {_LONGEST_PASSPHRASE} characters are taken.")
    if len(set(normal_passphrase(passphrase).reveal().decode("utf-8").strip())) < 3:
        raise InvalidInput(
            f"The {what} is one or two characters repeated.", next_step="Use something that takes longer to guess."
        )


def same_passphrase(wrapping: Wrapping, passphrase: Secret) -> bool:
    """Whether the wrapping was stretched from this passphrase."""
    if wrapping.keyed_by != "passphrase":
        return False
    salt, cost = read_stretch_parameters(wrapping.parameters)
    return stretch(passphrase, salt, cost) == wrapping.key


class PassphraseProtector:
    """The wrapping key is stretched from a passphrase with Argon2id (3 passes, 64 MiB, 4 lanes unless said otherwise).

    `cost` counts for new wrappings; an existing one is recalled at its own.
    """

    keyed_by: KeyedBy = "passphrase"

    def __init__(self, passphrase: Secret, *, cost: Cost | None = None, random: Random = os.urandom) -> None:
        self._passphrase = passphrase
        self._cost = cost or Cost()
        self._random = random

    def establish(self) -> Wrapping:
        """Raises InvalidInput when the passphrase is too easy to guess."""
        check_passphrase(self._passphrase, "vault passphrase")
        salt = self._random(SALT_BYTES)
        key = stretch(self._passphrase, salt, self._cost)
        return Wrapping(keyed_by="passphrase", parameters=stretch_parameters(salt, self._cost), key=key)

    def recall(self, parameters: JsonObject) -> Wrapping:
        salt, cost = read_stretch_parameters(parameters)
        return Wrapping(keyed_by="passphrase", parameters=dict(parameters), key=stretch(self._passphrase, salt, cost))

    def rests_on(self, matches: Callable[[Secret], bool]) -> bool:
        return matches(self._passphrase)


class KeyringProtector:
    """The wrapping key is random and kept in the desktop's keyring, one entry a wrapping.

    `timeout` (seconds) bounds every keyring call; a desktop may show its unlock dialog within it. Both calls raise
    KeyringAbsent, KeyringLocked, KeyringHung, KeyringPlaintext, KeyringUnknown; `recall` KeyringKeyMissing too.
    A process that is killed between making an entry and the vault that uses it leaves the entry behind: it opens
    nothing.
    """

    keyed_by: KeyedBy = "keyring"

    def __init__(self, timeout: float = 30.0) -> None:
        self._timeout = timeout

    def establish(self) -> Wrapping:
        entry = os.urandom(16).hex()
        key = new_key()
        keyring_client.store(_RING_SERVICE, f"vault {entry}", key, timeout=self._timeout)
        return self._wrapping(entry, key)

    def recall(self, parameters: JsonObject) -> Wrapping:
        entry = parameters.get("entry")
        odd = not isinstance(entry, str) or len(entry) != 32 or not set(entry) <= set("0123456789abcdef")
        if odd or len(parameters) != 1:
            raise VaultBroken("The vault's header names no keyring entry.", next_step="Restore vault.db from a backup.")
        key = keyring_client.fetch(_RING_SERVICE, f"vault {entry}", timeout=self._timeout)
        return self._wrapping(str(entry), key)

    def rests_on(self, matches: Callable[[Secret], bool]) -> bool:
        return False

    def _wrapping(self, entry: str, key: Secret) -> Wrapping:
        def discard() -> None:
            keyring_client.delete(_RING_SERVICE, f"vault {entry}", timeout=self._timeout)

        return Wrapping(keyed_by="keyring", parameters={"entry": entry}, key=key, discard=discard)
