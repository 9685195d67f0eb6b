"""What a command says to whoever sees it for the first time."""

from __future__ import annotations

import copy
import json

import pytest

from goex.cli import doctor
from goex.paths import Paths
from goex.rpc import goex_pb2 as pb
from tests.goex.cli.conftest import GOEX, Inside
from tests.goex.cli.fake import Fake, mapped
from tests.support.terminal import Terminal


@pytest.mark.parametrize(
    ("sure", "says"), [(True, "of which goex exec takes the first:"), (False, "of which one would run:")]
)
def test_candidates_are_said_to_be_alternatives(
    inside: Inside, fake: Fake, monkeypatch: pytest.MonkeyPatch, sure: bool, says: str
) -> None:
    several = mapped(sure=sure).mapped
    monkeypatch.setattr("goex.client.Client.map", lambda *_, **__: several)
    assert says in inside("map", "send hi").out
    one = pb.MapReply(candidates=several.candidates[:1], sure=sure)
    monkeypatch.setattr("goex.client.Client.map", lambda *_, **__: one)
    said = inside("map", "send hi").out
    assert "Alternatives" not in said and said.startswith("needs ")


def test_what_no_words_mean_is_no_alternative(inside: Inside, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    several = mapped(sure=True).mapped
    several.candidates[0].score, several.candidates[1].score = 0.98, 0.0
    monkeypatch.setattr("goex.client.Client.map", lambda *_, **__: copy.deepcopy(several))
    said = inside("map", "send hi")
    assert "Alternatives" not in said.out and several.candidates[0].scopes[0] in said.out
    assert len(json.loads(inside("map", "send hi", "--json").out)["candidates"]) == 2
    several.sure = False
    assert "Alternatives" in inside("map", "send hi").out


def test_an_error_of_the_configuration_is_said_once(env: dict[str, str], paths: Paths) -> None:
    paths.create()
    paths.config_file.write_text("[aks]\n")
    paths.config_file.chmod(0o600)
    paths.snapshots.mkdir(exist_ok=True)
    (first,) = [one for one in doctor.checks(env, quick=True) if "aks" in one.says]
    assert first.name == "config" and first.mend
    paths.log_file.write_text(f"2026-11-24 03:01:21,851 ERROR goex.daemon {first.says} {first.mend}\n")
    paths.log_file.chmod(0o600)
    found = doctor.checks(env, quick=True)
    assert [one.name for one in found if "aks" in one.says] == ["config"]
    assert next(one.says for one in found if one.name == "daemon") == "isn't running; config.toml stops it"
    assert {"folders", "vault", "terminal"} <= {one.name for one in found}


def test_mcp_by_hand_says_what_it_is(env: dict[str, str], fake: Fake) -> None:
    with Terminal([*GOEX, "mcp"], env=env) as terminal:
        terminal.expect("speaks MCP on standard input and output")
        terminal.expect("goex connect --help")
