"""Checks of a plan's requests before a socket exists. Pure.

The secret may go to the origins of its own account only, into one header, for one action, until the lease expires;
a plan that would need more is refused whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from policies.errors import InvalidInput
from runtimes.gateway.head import CREDENTIALS, OVERRIDES
from runtimes.gateway.plan import PlannedRequest, Rule
from runtimes.gateway.urls import BadTarget, check_segment
from vault.lease import Lease

AccountKey = tuple[str, str]

MAX_ATTEMPTS = 20
MAX_CREDENTIAL = 8192

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
# What the gateway writes itself, or what would change how the message is read.
OURS = frozenset(
    {
        "host", "content-length", "content-type", "transfer-encoding", "connection", "keep-alive", "te", "trailer",
        "upgrade", "expect", "accept-encoding", "proxy-authorization", "proxy-connection", "cookie",
        "x-http-method-override", "x-http-method", "x-method-override",
    }
)  # fmt: skip


def credential(request: PlannedRequest, lease: Lease) -> tuple[str, str]:
    """The one header that carries the secret. Raises InvalidInput when it wouldn't be exactly one header."""
    return request.credential_header, credential_text(request.credential_format, lease)


def credential_text(form: str, lease: Lease) -> str:
    """The secret as `form` has it. Raises InvalidInput when it couldn't be one header's value."""
    secret = lease.secret.reveal()
    if not secret:
        raise InvalidInput(f"The credential of {lease.account.id} is empty.")
    try:
        value = form.replace("{secret}", secret.decode("ascii"))
    except UnicodeError as error:
        raise InvalidInput(f"The credential of {lease.account.id} can't be written in a header.") from error
    if not _VALUE.fullmatch(value) or len(value) > MAX_CREDENTIAL:
        raise InvalidInput(
            f"The credential of {lease.account.id} can't be written in a header.",
            next_step="Put it into the vault again, without line breaks or spaces around it.",
        )
    return value


def check_reach(what: PlannedRequest | Rule, held: Mapping[AccountKey, Lease]) -> Lease:
    """The lease of a request or rule. Raises InvalidInput where its credential may not go there."""
    lease = held.get(what.account)
    if lease is None:
        raise InvalidInput(f"{what.id} has no lease of {'/'.join(what.account)}.")
    if what.origin not in lease.account.origins:
        raise InvalidInput(f"{what.id} goes to {what.origin}, which isn't an origin of the account {lease.account.id}.")
    if what.origin.scheme == "http" and not lease.account.private:
        raise InvalidInput(f"{what.id} would send a credential over plain http.")
    if what.method not in _METHODS:
        raise InvalidInput(f"{what.id} has the method {what.method[:20]!r}, which isn't one that is sent.")
    return lease


def check_header_name(what: PlannedRequest | Rule, name: str) -> None:
    """Raise InvalidInput unless a credential can stand in the header of that name."""
    if not _TOKEN.fullmatch(name):
        raise InvalidInput(f"{what.id} has no place for its credential.")
    if name.lower() in OURS:
        raise InvalidInput(f"{what.id} puts its credential into a header that isn't for credentials.")


def check_request(request: PlannedRequest, held: Mapping[AccountKey, Lease]) -> None:
    """Raise InvalidInput for a request that can't be sent safely."""
    lease = check_reach(request, held)
    if not 1 <= request.attempts <= MAX_ATTEMPTS:
        raise InvalidInput(f"{request.id} has {request.attempts} attempts; 1 to {MAX_ATTEMPTS} are possible.")
    if request.attempts > 1 and request.method not in ("GET", "HEAD"):
        raise InvalidInput(f"{request.id} isn't a read, so it can't be tried more than once.")
    _check_path(request)
    if request.credential_format.count("{secret}") != 1:
        raise InvalidInput(f"{request.id} has no place for its credential.")
    check_header_name(request, request.credential_header)
    names = [name.lower() for name in request.headers]
    for name, value in request.headers.items():
        if not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value) or name.lower() in OURS | OVERRIDES | CREDENTIALS:
            raise InvalidInput(f"{request.id} has a header {name[:60]!r} that can't be sent.")
    if request.credential_header.lower() in names or len(set(names)) != len(names):
        raise InvalidInput(f"{request.id} has one header twice.")
    if request.body_format == "form" and not isinstance(request.body, Mapping | None):
        raise InvalidInput(f"{request.id} has a form that isn't a flat object.")
    if request.body_format == "none" and request.body is not None:
        raise InvalidInput(f"{request.id} has a body and no format for it.")
    credential(request, lease)


def _check_path(request: PlannedRequest) -> None:
    literals = [*request.base_path, *request.path]
    for index, part in enumerate(literals):
        if not isinstance(part, str):
            continue
        try:
            check_segment(part, may_be_empty=index == len(literals) - 1 and index > 0)
        except BadTarget as error:
            raise InvalidInput(f"The path of {request.id} can't be sent: {error.message}.") from error
