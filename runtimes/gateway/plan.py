"""What an action may send, fixed before the first byte of untrusted data is read.

A plan is an ordered list of requests, each allowed once, each only after the ones before it were answered well.
Values may come from earlier answers (`Ref`), and only values: never a host, a method, or the shape of a path.
The gateway resolves the references itself from what *it* saw, and compares; it sends what it has resolved, not
what the container wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from policies.accounts import Origin
from policies.catalog import Expect
from policies.jsonvalue import JsonValue


@dataclass(frozen=True, slots=True)
class Ref:
    """A value in the JSON answer to an earlier request of this plan, by path (`policies.jsonvalue.find`).

    `optional`: nothing need be there; `omitted`: what isn't there is left out. Only an undo says so, whose references
    are filled before it is planned: to the gateway, a missing value is a missing value.
    """

    request: str
    path: str
    optional: bool = False
    omitted: bool = False

    def to_json(self) -> JsonValue:
        how = ["?-"] if self.omitted else ["?"] if self.optional else []
        return {"$ref": [self.request, self.path, *how]}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRequest:
    """One HTTP request. `path` is a tuple of segments, unencoded; each is encoded as exactly one segment.

    `query` and `body` may hold `Ref`s at any depth (`body` for `json`; for `form` a flat mapping). `expect` is
    checked on the answer; when it doesn't hold, no later request of the plan is sent. Expect values may be Refs.
    `attempts` > 1 lets a read be repeated until `expect` holds (read-back of a service that is slow to settle).
    `optional` (probes): its failure doesn't stop what follows.
    """

    id: str  # "call-0", "pre-0", "guard-0", "undo-0", "verify-0", "probe-0"
    account: tuple[str, str]  # (service, name): whose credential
    origin: Origin
    base_path: tuple[str, ...]
    method: str
    path: tuple[str | Ref, ...]
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    body_format: Literal["json", "form", "none"] = "none"
    credential_header: str = "Authorization"
    credential_format: str = "Bearer {secret}"
    expect: tuple[Expect, ...] = ()
    attempts: int = 1
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayPlan:
    """Everything the gateway needs for one action, apart from the leases."""

    action_id: str
    requests: tuple[PlannedRequest, ...]
    max_request_bytes: int = 1_000_000
    max_response_bytes: int = 10_000_000
    seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One answered request, as the gateway saw it: redacted, parsed, before the container got it.

    `body` is None when the answer wasn't JSON (then `text` holds its beginning). `well` says whether the status
    was 2xx (or what an expectation on the status allows) and every expectation held; `failed` names the first that
    didn't, in words.
    """

    request: str
    status: int
    well: bool
    body: JsonValue
    text: str = ""
    failed: str = ""
    size: int = 0  # bytes of the answer's body as it came, before anything was taken out of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Something that the plan doesn't hold was tried. Goes to the log, and (as a 4xx) to the container."""

    reason: str
    method: str
    target: str  # host and path as they came, escaped and shortened, without query
