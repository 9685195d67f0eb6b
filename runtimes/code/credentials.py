"""Credential files for a program: stand-ins with placeholders in them, and where they say that tokens are to be had."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from policies.accounts import Account, Origin
from policies.errors import InvalidInput
from runtimes.code import environment
from runtimes.gateway.plan import TokenEndpoint
from runtimes.gateway.redactor import Redactor
from vault.credential_file import GOOGLE_TOKENS, GOOGLE_VARIABLE, USERS_STAND_IN
from vault.lease import BY_CHANCE, FileTemplate, Lease

_GOOGLE = ".googleapis.com"
_GOOGLES_FILE = "google-user.json"
_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")


@dataclass(slots=True)
class Handed:
    """What a program gets: files by their names in its folder, variables that lead there, and the endpoints that the
    gateway answers for them."""

    files: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    endpoints: tuple[TokenEndpoint, ...] = ()


def handed(leases: Iterable[Lease], placeholders: Mapping[tuple[str, str], str]) -> Handed:
    """The stand-ins for the leases' files. Where two have one name or variable, the first account has it; each has its
    own as `GOEX_FILE_<SERVICE>_<ACCOUNT>`, too, and the first of a service as `GOEX_FILE_<SERVICE>`. Raises
    InvalidInput for a file that would show its secret all the same."""
    made = Handed()
    for lease in leases:
        account = (lease.account.service, lease.account.name)
        if lease.file is None or account not in placeholders:
            continue
        words = "-".join(_NOT_WORD.sub("-", part).strip("-") for part in account)
        name = lease.file.name if lease.file.name not in made.files else f"{words}-{lease.file.name}"
        if _shows_it(lease, lease.file):
            raise InvalidInput(
                f"The credential file of {lease.account.id} holds its secret a second time, written in another way.",
                next_step="Put it into the vault again, with the secret standing there once: goex vault put --replace",
            )
        made.files[name] = lease.file.filled(placeholders[account])
        place = f"{environment.FOLDER}/{name}"
        service, own = (_NOT_WORD.sub("_", part).strip("_").upper() for part in account)
        for variable in (lease.file.variable, f"GOEX_FILE_{service}", f"GOEX_FILE_{service}_{own}"):
            if variable and variable not in environment.VARIABLES:
                made.variables.setdefault(variable, place)
        if lease.file.endpoint:
            made.endpoints += (endpoint(account, lease.file.endpoint),)
    return made


def with_googles(made: Handed, accounts: Iterable[Account]) -> Handed:
    """The same with a file for `google.auth.default()`, where the first of Google's accounts has none of its own, and
    no other file's tokens are to be had in the same place, which gives one account's alone."""
    first = next((one for one in accounts if _is_googles(one)), None)
    if first is None or GOOGLE_VARIABLE in made.variables:
        return made
    own = endpoint((first.service, first.name), GOOGLE_TOKENS)
    if any((one.origin, one.path) == (own.origin, own.path) for one in made.endpoints):
        return made
    name = _GOOGLES_FILE
    while name in made.files:
        name = f"goex-{name}"
    made.files[name] = json.dumps(USERS_STAND_IN, indent=2)
    made.variables[GOOGLE_VARIABLE] = f"{environment.FOLDER}/{name}"
    made.endpoints += (own,)
    return made


def _is_googles(account: Account) -> bool:
    return bool(account.origins) and all(at.host.endswith(_GOOGLE) for at in account.origins)


def _shows_it(lease: Lease, file: FileTemplate) -> bool:
    """Whether the secret is in the stand-in all the same, in whatever writing."""
    if file.endpoint or len(lease.secret.reveal()) < BY_CHANCE:
        return False
    return Redactor([lease.secret]).finds("\n".join(file.parts).encode("utf-8"))


def endpoint(account: tuple[str, str], url: str) -> TokenEndpoint:
    """A token endpoint of an account, by its URL. Raises InvalidInput."""
    path = tuple(unquote(part) for part in urlsplit(url).path.strip("/").split("/"))
    return TokenEndpoint(account=account, origin=Origin.parse(url), path=path)
