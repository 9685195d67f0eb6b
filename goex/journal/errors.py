"""Errors of the journal."""

from __future__ import annotations

from policies.errors import ExitStatus, GoexError, Unavailable


class JournalBroken(GoexError):
    """The journal isn't what was written. Nothing is appended to it any more."""

    code = "journal-broken"
    exit_status = ExitStatus.CONFLICT


class JournalBehind(JournalBroken):
    """The journal is whole by itself, and isn't the one that the vault knows: an older copy, another one, or none."""

    code = "journal-behind"


class JournalFailed(Unavailable):
    """The disk or the database refused: the step wasn't written."""

    code = "state"


class JournalLocked(Unavailable):
    """No key yet: the vault hasn't been unlocked since the daemon started."""

    code = "sealed"
    exit_status = ExitStatus.SEALED
