"""The gateway's rules for code with exactly one defence taken away: the controls of the attacks of code.

They live with the tests, and nothing that is shipped can be told to be one of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from policies.accounts import Origin
from runtimes.gateway import bodies, head, request_headers, routes, rule_match, urls
from runtimes.gateway.admission import Admission, AskedHead, Local, No
from runtimes.gateway.rule_match import RulePolicy
from runtimes.gateway.server import ActionServer
from runtimes.gateway.stream_redactor import StreamRedactor
from tests.adversarial.code_scene import CodeScene

Patch = pytest.MonkeyPatch
Without = Callable[[Patch, CodeScene], None]


def nothing(module: Any, name: str, value: Any = None) -> Without:
    return lambda patch, scene: patch.setattr(module, name, lambda *_, **__: value)


def sets(module: Any, name: str, value: Any) -> Without:
    return lambda patch, scene: patch.setattr(module, name, value)


def in_rules(**changes: Any) -> Without:
    return lambda patch, scene: scene.change(**changes)


class UnsafeAnyOrigin(RulePolicy):
    def knows(self, origin: Origin) -> bool:
        return True

    def admit(self, asked: AskedHead) -> Admission | Local | No:
        self._plan = replace(self._plan, rules=tuple(replace(one, origin=asked.origin) for one in self._plan.rules))
        return super().admit(asked)


class UnsafeAnyMethod(RulePolicy):
    def admit(self, asked: AskedHead) -> Admission | Local | No:
        self._plan = replace(
            self._plan, rules=tuple(replace(one, method=asked.head.method) for one in self._plan.rules)
        )
        return super().admit(asked)


def policy(kind: type[RulePolicy]) -> Without:
    return lambda patch, scene: patch.setattr(ActionServer, "make_policy", lambda self, plan: kind(plan))


def as_it_came(patch: Patch, scene: CodeScene) -> None:
    """Every header of the code's that isn't framing, in the code's order."""
    dropped = {*request_headers._FRAMING, "authorization"}
    patch.setattr(
        rule_match,
        "headers_of",
        lambda head, rule, **_: (tuple(pair for pair in head.headers if pair[0] not in dropped), ()),
    )


def lenient(patch: Patch, scene: CodeScene) -> None:
    patch.setattr(bodies, "parse", lambda text, **_: json.loads(text))


def written_as_it_came(patch: Patch, scene: CodeScene) -> None:
    patch.setattr(bodies, "_dumped", lambda value: TWICE)


TWICE = b'{"channel":"C2","channel":"C1"}'


def unredacted(patch: Patch, scene: CodeScene) -> None:
    patch.setattr(ActionServer, "make_redactor", lambda self, secrets: StreamRedactor([]))


def lax_head(patch: Patch, scene: CodeScene) -> None:
    """A length beside chunks is believed to be a mistake."""
    real = head.parse_head

    def parse(raw: bytes, **more: Any) -> Any:
        lines = raw.split(b"\r\n")
        return real(b"\r\n".join(one for one in lines if not one.lower().startswith(b"content-length")), **more)

    patch.setattr("runtimes.gateway.rule_match.parse_head", parse)


def same_path(patch: Patch, scene: CodeScene) -> None:
    patch.setattr(routes, "_ENCODED", routes.re.compile(r"(?!)"))
    patch.setattr(urls, "check_segment", lambda segment, **_: segment)
    patch.setattr(routes, "check_segment", lambda segment, **_: segment)


def any_kind(patch: Patch, scene: CodeScene) -> None:
    patch.setattr(bodies, "_HIDDEN", bodies.re.compile(r"(?!)"))
