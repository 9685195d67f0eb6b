"""The machine's facts that a model may be told: its time and zone, its locale, which accounts there are.

Only gathers; `mapper.context` says what of them is told to whom.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from goex.config import Model
from goex.daemon.vault_state import VaultState
from mapper.context import Context
from policies.accounts import Account
from policies.databases import SERVICE as DATABASE

_LOCALE = re.compile(r"[A-Za-z]{2,3}(?:_[A-Za-z]{2,4})?")
_ZONE = re.compile(r"[A-Za-z0-9_+\-]{1,40}(?:/[A-Za-z0-9_+\-]{1,40}){0,3}")
_MODEL = "model"  # the service whose records are the model's own keys
_LOCALTIME = "/etc/localtime"


def model_context(
    settings: Model, vault_state: VaultState, clock: Callable[[], datetime], environment: Mapping[str, str] = os.environ
) -> Context:
    """Everything that there is to tell, now."""
    return Context(
        zone=zone_name(environment),
        locale=locale_name(environment),
        accounts=tuple(sorted(record.account.id for record in vault_state.records() if _serves(record.account))),
        about_me=settings.about_me,
    ).at(clock())


def zone_name(environment: Mapping[str, str], localtime: str = _LOCALTIME) -> str:
    """The zone's name as the machine has it, "" where it has none that could be one."""
    name = environment.get("TZ", "").removeprefix(":")
    if not name:
        try:
            name = str(Path(localtime).readlink()).partition("zoneinfo/")[2]
        except OSError:
            return ""
    return name if _ZONE.fullmatch(name) else ""


def locale_name(environment: Mapping[str, str]) -> str:
    """The locale of times and numbers, like "en_GB"; "" where none is set."""
    name = next((environment[key] for key in ("LC_ALL", "LC_TIME", "LANG") if environment.get(key)), "")
    match = _LOCALE.match(name)
    return match[0] if match and match[0] not in ("C", "POSIX") and len(match[0]) > 1 else ""


def _serves(account: Account) -> bool:
    return account.service not in (_MODEL, DATABASE)
