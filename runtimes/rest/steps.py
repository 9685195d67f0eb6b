"""Steps: planned requests with the catalogued call that each one is, and their JSON form.

The JSON form is what a digest is taken over and what is read back when the action runs, so both directions are exact:
what was shown is what runs. In it a reference is `{"$ref": [request, path]}`, and nothing else may look like one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from policies.accounts import Origin
from policies.actions import Call
from policies.jsonvalue import JsonObject
from policies.services import Expect
from runtimes.gateway.plan import CredentialPlace, PlannedRequest
from runtimes.rest.references import plain, referring

Role = Literal["pre", "call", "after", "guard", "undo", "verify", "probe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request of a plan: for which call of the action (0-based), in which role, with which arguments.

    `arguments` may hold `Ref`s at any depth; `request` is made of them and nothing else.
    """

    call: int
    role: Role
    service: str
    method: str
    account: str
    read: bool
    arguments: Annotated[JsonObject, dict[str, Any], plain, referring]
    request: Annotated[PlannedRequest, dict[str, Any], request_to_json, request_from_json]

    @property
    def id(self) -> str:
        return self.request.id

    @property
    def method_id(self) -> str:
        return f"{self.service}.{self.method}"

    def as_call(self) -> Call:
        """The call that this step makes; only for steps without references."""
        return Call(service=self.service, method=self.method, arguments=plain(self.arguments), account=self.account)


def request_to_json(request: PlannedRequest) -> dict[str, Any]:
    """Every field of a planned request."""
    return {
        "id": request.id,
        "account": list(request.account),
        "origin": str(request.origin),
        "base_path": list(request.base_path),
        "method": request.method,
        "path": plain(list(request.path)),
        "query": plain(request.query),
        "headers": dict(request.headers),
        "body": plain(request.body),
        "body_format": request.body_format,
        **({"body_type": request.body_type} if request.body_type else {}),
        "credential_header": request.credential_name,
        "credential_format": request.credential_format,
        **({} if request.credential_at == "header" else {"credential_at": request.credential_at}),
        **({"credential_more": [list(place) for place in more]} if (more := request.credential_more) else {}),
        "expect": [expect_to_json(expect) for expect in request.expect],
        "attempts": request.attempts,
        "optional": request.optional,
    }


def request_from_json(value: Any) -> PlannedRequest:
    """The request that `request_to_json` wrote."""
    return PlannedRequest(
        id=value["id"],
        account=(value["account"][0], value["account"][1]),
        origin=Origin.parse(value["origin"]),
        base_path=tuple(value["base_path"]),
        method=value["method"],
        path=tuple(referring(value["path"])),
        query=referring(value["query"]),
        headers=dict(value["headers"]),
        body=referring(value["body"]),
        body_format=value["body_format"],
        body_type=value.get("body_type", ""),
        credential_name=value["credential_header"],
        credential_format=value["credential_format"],
        credential_at=value.get("credential_at", "header"),
        credential_more=tuple(CredentialPlace(*place) for place in value.get("credential_more", ())),
        expect=tuple(expect_from_json(expect) for expect in value["expect"]),
        attempts=value["attempts"],
        optional=value["optional"],
    )


def expect_to_json(expect: Expect) -> dict[str, Any]:
    """Every field of an expectation."""
    return {"op": expect.op, "path": expect.path, "value": plain(expect.value), "says": expect.says}


def expect_from_json(value: Any) -> Expect:
    """The expectation that `expect_to_json` wrote."""
    return Expect(op=value["op"], path=value["path"], value=referring(value["value"]), says=value["says"])
