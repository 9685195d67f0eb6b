"""What a digest is over."""

from __future__ import annotations

import json
from dataclasses import asdict, fields

import pytest

from policies.actions import Need
from policies.services import Risk
from policies.typed_json import to_json

NEED = Need(service="s", account="a", scope="c", risk=Risk.WRITE, methods=("m", "n"), arguments=({"x": [1, {"y": 2}]},))


@pytest.mark.promise(2)
@pytest.mark.parametrize("filled", [(), ("x",)])
def test_each_field_of_a_permission_is_in_it(filled: tuple[str, ...]) -> None:
    need = Need(**{**{one.name: getattr(NEED, one.name) for one in fields(Need)}, "filled": filled})
    said = json.loads(json.dumps(asdict(need)))
    if not filled:
        del said["filled"]
    assert to_json(need) == said
