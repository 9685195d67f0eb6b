"""Attacks of code on its rules: each refused or made harmless, each successful in its control, where exactly what
stands in its way is taken out of the gateway; and where several stand there, each is enough."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.adversarial.code_attacks import CASES, Case
from tests.adversarial.code_scene import CodeScene, code_scene
from tests.runtimes.gateway.support import Got, opened

LAYERS = [(name, layer) for name, case in CASES.items() if len(case.without) > 1 for layer in range(len(case.without))]


async def attack(name: str, run_dir: Path, patch: pytest.MonkeyPatch, *without: int) -> CodeScene:
    """What came of the attack with these of its defences taken away."""
    case: Case = CASES[name]
    async with code_scene(run_dir, patch, stranger=name == "code_other_certificate") as scene:
        scene.rules = (*scene.rules, *case.rules)
        if case.answer is not None:
            scene.good.answer = case.answer
        if name == "code_name_to_metadata":
            scene.lead = ["169.254.169.254"]
        if name == "code_rebinding":
            scene.private, scene.lead = False, ["93.184.216.34", "10.0.0.7"]
        for index in without:
            case.without[index][1](patch, scene)
        async with opened(scene.plan, scene.leases, run_dir, scene.server_type) as (box, scene.watch):
            try:
                found = await case.do(scene, box)
                scene.got = found if isinstance(found, Got) else None
            except (OSError, ssl.SSLError, ValueError):
                pass  # the connection was ended
            except Exception as error:
                if type(error).__module__ != "http.client":
                    raise
        return scene


@pytest.mark.promise(51)
@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", CASES)
async def test_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = await attack(name, tmp_path, monkeypatch)
    assert not CASES[name].came(scene), scene.good.seen
    assert CASES[name].quiet or len(scene.watch.refusals) == 1


@pytest.mark.promise(51)
@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", CASES)
async def test_control(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = await attack(name, tmp_path, monkeypatch, *range(len(CASES[name].without)))
    assert CASES[name].came(scene), (scene.got, scene.watch.refusals, scene.watch.exchanges)


@pytest.mark.promise(51)
@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "left"), LAYERS)
async def test_each_layer_is_enough(name: str, left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [index for index in range(len(CASES[name].without)) if index != left]
    assert not CASES[name].came(await attack(name, tmp_path, monkeypatch, *others))
