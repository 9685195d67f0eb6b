"""A lease: one credential, for one action, for the origins that its account names. It ends with the action.

Plain data, so that a runtime can hold one without being able to reach the store that made it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from policies.accounts import Account
from policies.databases import Terms
from vault.secret import Secret

BY_CHANCE = 6  # characters; a secret of fewer may stand in a file where it isn't meant


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTemplate:
    """A credential file as code gets it. Between its `parts` stands the account's placeholder; a file of one part holds
    none, and leads to it: `endpoint` is where tokens are to be had with it, which the gateway answers itself.

    `variable`: the environment variable that says where the file is; "" for none. Nothing in it is secret.
    """

    name: str
    parts: tuple[str, ...]
    variable: str = ""
    endpoint: str = ""

    def filled(self, placeholder: str) -> str:
        """The file's text."""
        return placeholder.join(self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """`secret` may go to `account.origins` on behalf of `action_id`, until `expires`.

    `narrowed`: who holds the credential to what the action needs. "token": the service itself, since the token opens
    `scopes` alone, as its server stated. "gateway": GoEx, since the credential opens more (`scopes` is then what it is
    known to open, () where that isn't known). `redact` is what else must never come back, such as the password within
    a basic credential. Of a database `secret` is its password, and `terms` say how changes there are taken back.
    """

    action_id: str
    account: Account
    secret: Secret
    expires: datetime
    narrowed: Literal["token", "gateway"] = "gateway"
    scopes: tuple[str, ...] = ()
    redact: tuple[Secret, ...] = ()
    terms: Terms | None = None
    file: FileTemplate | None = None  # what code gets instead of the account's credential file


# A database's credential by the name of its entry, for what the action of this id looks at before it is decided on.
Lend = Callable[[str, str], AbstractContextManager[Lease]]
