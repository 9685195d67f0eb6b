"""What `goex doctor` says of the vault, of its sealing, and of polkit; and the settings behind them."""

from __future__ import annotations

from pathlib import Path

import pytest

from goex.cli import doctor
from goex.config import BadConfig, Config, parse
from goex.paths import Paths
from goex.units.places import POLICY
from tests.goex.cli.fake import Fake


def check(env: dict[str, str], name: str) -> doctor.Check:
    return {each.name: each for each in doctor.checks(env, quick=True)}[name]


def test_a_broken_vault_names_the_way_back(fake: Fake, env: dict[str, str]) -> None:
    fake.status.vault = "broken"
    fake.status.vault_trouble = "SQLite can't read the vault's file."
    found = check(env, "vault")
    assert not found.ok
    assert found.needed
    assert "can't read" in found.says
    assert "goex vault restore FILE --replace" in found.mend


def test_why_it_is_sealed_is_said(fake: Fake, env: dict[str, str]) -> None:
    fake.status.vault = "sealed"
    fake.status.vault_trouble = "the screen was locked"
    assert check(env, "vault").says == "sealed: the screen was locked"


def test_no_logind_is_a_note_and_no_error(fake: Fake, env: dict[str, str]) -> None:
    fake.status.sealing = "after 8 h without use; not on lock or before sleep: There is no logind here."
    found = check(env, "sealing")
    assert (found.ok, found.needed) == (False, False)
    assert "no logind" in found.says
    fake.status.sealing = "after 8 h without use, on lock, before sleep"
    assert check(env, "sealing").ok


def wants(paths: Paths, mode: str) -> None:
    paths.config_file.write_text(f"[ask]\npolkit = {mode}\n")
    paths.config_file.chmod(0o600)


def test_polkit_is_not_missed_where_it_is_not_wanted(fake: Fake, env: dict[str, str]) -> None:
    assert check(env, "polkit").ok


@pytest.mark.parametrize(("mode", "needed"), [("true", False), ('"also"', True)])
def test_how_polkits_policy_is_installed(
    paths: Paths, monkeypatch: pytest.MonkeyPatch, mode: str, needed: bool
) -> None:
    wants(paths, mode)
    monkeypatch.setattr(doctor, "_is_root", lambda: False)
    monkeypatch.setattr("goex.units.places.POLICY_PLACE", Path("/nowhere/org.goex.policy"))
    found = doctor._polkit(paths)
    assert (found.ok, found.needed) == (False, needed)
    assert found.mend.endswith(f"install -m 644 {POLICY} /nowhere/org.goex.policy")
    monkeypatch.setattr("goex.units.places.POLICY_PLACE", POLICY)
    assert doctor._polkit(paths).ok


def test_root_is_told_that_polkit_proves_nothing(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    wants(paths, "true")
    monkeypatch.setattr(doctor, "_is_root", lambda: True)
    found = doctor._polkit(paths)
    assert "yes to root" in found.says
    assert not found.ok


# ---- settings


def test_when_the_vault_seals_itself() -> None:
    assert (Config().vault.seal_after, Config().vault.seal_on_lock, Config().vault.seal_on_sleep) == (
        28_800,
        True,
        True,
    )
    made = parse({"vault": {"seal_after": 0, "seal_on_lock": False, "seal_on_sleep": False}}).vault
    assert (made.seal_after, made.seal_on_lock, made.seal_on_sleep) == (0, False, False)


@pytest.mark.parametrize(
    "table", [{"seal_after": -1}, {"seal_after": 604_801}, {"seal_after": "8h"}, {"seal_on_lock": 1}, {"seal_afer": 5}]
)
def test_a_setting_that_makes_no_sense_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(BadConfig):
        parse({"vault": table})
