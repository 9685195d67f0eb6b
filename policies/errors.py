"""One error root. Its message says what is wrong and its `next_step` says what to do about it.

Rules: every error that a person or an agent can meet derives from `GoexError`; a library's own error never
crosses a package border (it is translated at the edge); an error never carries a secret. `code` is stable and
machine-readable, `exit_status` is what the command line ends with.
"""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit codes of the `goex` command (README.md has the table)."""

    OK = 0
    FAILED = 1  # the action ran and failed, or something unforeseen happened
    USAGE = 2  # the request itself is malformed
    DENIED = 3  # the person, a rule, or an absence said no
    TIMED_OUT = 4  # nobody answered in time (which is a denial)
    AMBIGUOUS = 5  # the mapping is not sure enough; candidates were shown
    CONFLICT = 6  # someone changed the state since: nothing was touched
    SEALED = 7  # the vault is sealed, or a credential is missing
    UNAVAILABLE = 8  # Docker, the daemon, the keyring or a service can't be reached
    UNKNOWN = 9  # it can't be known whether the effect happened; the person must look
    UNSUPPORTED = 10  # GoEx doesn't do this (yet)


class GoexError(Exception):
    """Root of every error that GoEx raises on purpose.

    `message` is one sentence on what is wrong; `next_step` is what to do about it ("" when there is nothing).
    Both are plain text without secrets; they may hold foreign text, so whoever displays them escapes it
    (`policies.display_text`).
    """

    code: str = "error"
    exit_status: ExitStatus = ExitStatus.FAILED

    def __init__(self, message: str, *, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}".rstrip()


class InvalidInput(GoexError):
    """The request is malformed: wrong type, unknown name, too large, not there."""

    code = "invalid"
    exit_status = ExitStatus.USAGE


class Denied(GoexError):
    """The person, a rule or an absence said no."""

    code = "denied"
    exit_status = ExitStatus.DENIED


class Conflict(GoexError):
    """The state isn't what it was: nothing was touched. `difference` says what changed."""

    code = "conflict"
    exit_status = ExitStatus.CONFLICT

    def __init__(self, message: str, *, next_step: str = "", difference: tuple[str, ...] = ()) -> None:
        super().__init__(message, next_step=next_step)
        self.difference = difference


class Unavailable(GoexError):
    """Something that GoEx needs can't be reached: Docker, the daemon, a keyring, a service, disk space."""

    code = "unavailable"
    exit_status = ExitStatus.UNAVAILABLE


class Unsupported(GoexError):
    """GoEx doesn't do this, or doesn't do it yet. The message says so plainly."""

    code = "unsupported"
    exit_status = ExitStatus.UNSUPPORTED
