"""What a digest is over."""

from __future__ import annotations

from dataclasses import asdict, fields

import pytest

from policies import digest as digests
from policies.actions import Need
from policies.services import Risk

NEED = Need(service="s", account="a", scope="c", risk=Risk.WRITE, methods=("m", "n"), arguments=({"x": [1, {"y": 2}]},))


@pytest.mark.promise(2)
@pytest.mark.parametrize("filled", [(), ("x",)])
def test_each_field_of_a_permission_is_in_it(filled: tuple[str, ...]) -> None:
    need = Need(**{**{one.name: getattr(NEED, one.name) for one in fields(Need)}, "filled": filled})
    said = {**asdict(need), "risk": int(need.risk)}
    if not filled:
        del said["filled"]
    assert digests._need(need) == said
