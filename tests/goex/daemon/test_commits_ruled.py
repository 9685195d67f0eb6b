"""Commits of one and of several, by rules and confinement, over real sockets and containers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.goex.daemon.test_rules import apply
from tests.goex.databases.conftest import SHOP, Shop
from tests.support.daemon import Daemon
from tests.support.entries import Client
from tests.support.journey import Journey, as_the_person_sees, shell

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One for this file, whose rules and bounds each test sets."""
    with Daemon() as running:
        yield running


@pytest.fixture(scope="module")
def token(daemon: Daemon) -> str:
    return daemon.add_agent("bot")


@pytest.fixture
def other(folder: Path) -> Path:
    """A second folder of the same owner."""
    made = folder.with_name("other")
    made.mkdir()
    made.chmod(0o777)
    return made


def ran(daemon: Daemon, token: str, *folders: Path) -> list[str]:
    """Run a program in each of these, with a yes; returns the actions' ids."""
    found = [Journey(daemon, shell(folder, "date +%N > a.txt"), token=token).approve() for folder in folders]
    assert [one.action.state for one in found] == ["done"] * len(folders), found
    return [one.action.id for one in found]


def state(daemon: Daemon, token: str, id: str) -> str:
    return str(daemon.actions("Get", pb.ActionId(id=id), token=token).state)


@pytest.mark.sampled(1)
@pytest.mark.promise(13)
@pytest.mark.parametrize(
    "rest", [' in Folder::"{}")', ') when {{ context has folder && context.folder like "{}*" }}']
)  # fmt: skip
def test_what_forbids_commits_in_a_folder_forbids_them_among_others(
    daemon: Daemon, token: str, folder: Path, other: Path, rest: str
) -> None:
    apply(daemon, "")
    here, there = ran(daemon, token, folder, other)
    apply(daemon, f'@id("kept") forbid (principal, action == Action::"commit", resource{rest.format(folder)};')
    client = Client(daemon)
    for target, also in ((here, ()), (here, (there,)), (there, (here,))):
        ended = client.revert(target, "commit", also=also, token=token).ended()
        # It looks at nothing that is there now, so that the agent is told what it was.
        assert (ended.action.state, ended.problem.code) == ("denied", "denied")
        assert "kept" in ended.problem.message
        assert client.revert(target, "commit", also=also).ended().problem.code == "denied"
    assert [state(daemon, token, id) for id in (here, there)] == ["done", "done"]
    assert client.revert(there, "commit", token=token).approve().action.state == "done"


@pytest.mark.promise(13)
def test_an_agent_s_commits_are_confined_as_each_is(daemon: Daemon, token: str, folder: Path, other: Path) -> None:
    apply(daemon, "")
    here, there = ran(daemon, token, folder, other)
    daemon.configure(f'[confine]\nfolders = ["{other}"]\n')
    daemon.restart()
    try:
        client = Client(daemon)
        for target, also in ((here, ()), (here, (there,)), (there, (here,))):
            ended = client.revert(target, "commit", also=also, token=token).ended()
            assert (ended.action.state, ended.problem.code) == ("denied", "denied")
            assert "confined" in ended.problem.message
        assert [state(daemon, token, id) for id in (here, there)] == ["done", "done"]
        assert client.revert(there, "commit", also=(here,)).approve().action.state == "done", "the person isn't"
    finally:
        daemon.configure("")
        daemon.restart()


def test_a_commit_of_several_doesn_t_tell_an_agent_where_one_of_them_leads(
    daemon: Daemon, token: str, folder: Path, tmp_path: Path
) -> None:
    apply(daemon, "")
    client = Client(daemon)
    shop = Shop(client, "shop", tmp_path / "shop.db")
    shop.change(*SHOP)
    shop.file.chmod(0o600)
    client.add(shop.name, f"sqlite:///{shop.file}")
    (here,) = ran(daemon, token, folder)
    changed = shop.run("UPDATE orders SET total = 1 WHERE id = 1", token=token).action.id
    asked = client.revert(changed, "commit", also=(here,), token=token)
    told = asked.asked()
    assert str(folder) not in str(told) and not told.needs
    assert str(folder) in str(as_the_person_sees(daemon, told))
    asked.leave()
