"""A lease: one credential, for one action, for the origins that its account names. It ends with the action.

Plain data, so that a runtime can hold one without being able to reach the store that made it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from policies.accounts import Account
from vault.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """`secret` may go to `account.origins` on behalf of `action_id`, until `expires`."""

    action_id: str
    account: Account
    secret: Secret
    expires: datetime
