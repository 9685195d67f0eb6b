"""Two users on one machine: the agent's can ask, and can't decide, look, or come in by another door.

The daemon runs as root here, the agent as a user of its own, and somebody else as a third. The folders above GoEx's
own are open to all, so that what refuses is what GoEx itself has set.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from goex.rpc import goex_pb2 as pb
from tests.acceptance.clients import PROTO, Client, person_methods
from tests.support.daemon import APPROVAL_PASSPHRASE, GOEX, Daemon
from tests.support.person import approve

AGENT, SOMEBODY = 65534, 65533
HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become two other users")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that every user can enter."""
    made = Path(tempfile.mkdtemp(prefix="goex-two-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def opened(place: Path) -> Path:
    """The agent socket that config.toml opens to the agent's user."""
    return place / "agent.sock"


@pytest.fixture(scope="module")
def daemon(opened: Path) -> Iterator[Daemon]:
    running = Daemon(config=f'[[agent_socket]]\npath = "{opened}"\nusers = [{AGENT}]\n')
    for folder in (running.home, running.config_dir.parent, running.state_dir.parent, running.run_dir.parent):
        folder.chmod(0o755)
    with running:
        yield running


@pytest.fixture(scope="module")
def stubs(place: Path) -> Path:
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO.parent}", PROTO.name]
    subprocess.run([*command, f"--python_out={place}", f"--grpc_python_out={place}"], check=True, timeout=300)
    return place


def user(stubs: Path, uid: int | None) -> Client:
    """The Python client as that user; None: as the person, who is root here."""
    head = [sys.executable, str(HERE / "python_client.py"), str(stubs), "" if uid is None else str(uid)]
    return Client(head, {"PATH": os.environ["PATH"]})


def reached(client: Client, paths: list[Path]) -> dict[str, str]:
    lines = client.run(Path("-"), "reach", *map(str, paths))
    return {line["path"]: line["reach"] for line in lines}


def private(daemon: Daemon) -> list[Path]:
    inside = [path for top in (daemon.state_dir, daemon.run_dir, daemon.config_dir) for path in top.rglob("*")]
    return [daemon.state_dir, daemon.run_dir, daemon.config_dir, *inside]


@contextmanager
def open_to_all(*paths: Path) -> Iterator[None]:
    """File modes that let everybody in, for a while: what is left then is who the peer is."""
    before = [path.stat().st_mode & 0o7777 for path in paths]
    try:
        for path in paths:
            path.chmod(0o777)
        yield
    finally:
        for path, mode in zip(paths, before, strict=True):
            path.chmod(mode)


@pytest.mark.docker
def test_the_agents_user_runs_what_the_person_approves(daemon: Daemon, opened: Path, stubs: Path, place: Path) -> None:
    folder = place / "work"
    folder.mkdir()
    (folder / "old.txt").write_text("old\n")
    for path in (folder, folder / "old.txt"):
        os.chown(path, AGENT, AGENT)
    agent = user(stubs, AGENT)
    with agent.running(opened, "execute", str(folder), "echo new > old.txt", "60") as lines:
        asking = next(lines)
        assert asking.get("asking"), asking
        screen = approve([str(GOEX)], asking["asking"], APPROVAL_PASSPHRASE, env=daemon.env)
        assert str(AGENT) in screen  # who asks, as the kernel says it
        finished = [line for line in lines if "finished" in line]
    assert [line["finished"] for line in finished] == ["done"]
    assert (folder / "old.txt").read_text() == "new\n"


def test_the_daemon_knows_the_agents_user(opened: Path, daemon: Daemon, stubs: Path) -> None:
    assert user(stubs, AGENT).run(opened, "whoami")[0]["uid"] == AGENT


@pytest.mark.promise(3)
def test_the_agents_user_decides_nothing(daemon: Daemon, opened: Path, stubs: Path) -> None:
    codes = {line["method"]: line["code"] for line in user(stubs, AGENT).run(opened, "person")}
    assert codes == dict.fromkeys(person_methods(), "UNIMPLEMENTED")


def test_the_agents_user_sees_nothing_of_the_persons(daemon: Daemon, stubs: Path) -> None:
    paths = private(daemon)
    names = {path.name for path in paths}
    assert {"agent.sock", "user.sock", "vault.db", "state.db", "snapshots", "config.toml"} <= names
    assert set(reached(user(stubs, AGENT), paths).values()) == {"PermissionError"}
    assert set(reached(user(stubs, None), paths).values()) == {"ok"}


@pytest.mark.promise(84)
def test_every_file_is_closed_even_where_its_folder_is_open(daemon: Daemon, stubs: Path) -> None:
    with open_to_all(daemon.state_dir, daemon.run_dir, daemon.config_dir):
        tops = {daemon.state_dir, daemon.run_dir, daemon.config_dir}
        found = reached(user(stubs, AGENT), [path for path in private(daemon) if path not in tops])
    assert len(found) >= 6
    assert set(found.values()) == {"PermissionError"}


def test_somebody_else_is_refused_by_the_kernels_word(daemon: Daemon, opened: Path, stubs: Path) -> None:
    before = daemon.person("Log", pb.LogRequest(limit=1)).rows[0].number
    with open_to_all(opened):
        somebody = user(stubs, SOMEBODY)
        assert reached(somebody, [opened]) == {str(opened): "ok"}  # the file's mode lets it connect
        assert somebody.run(opened, "whoami")[0].get("error")
        assert user(stubs, AGENT).run(opened, "whoami")[0]["uid"] == AGENT
    rows = [row for row in daemon.person("Log", pb.LogRequest(limit=50)).rows if row.number > before]
    assert any(row.kind == "peer-refused" and str(SOMEBODY) in row.facts_json for row in rows)


@pytest.mark.promise(84)
@pytest.mark.parametrize("uid", [AGENT, SOMEBODY])
@pytest.mark.parametrize("name", ["user.sock", "agent.sock"])
def test_the_persons_own_sockets_refuse_other_users_whatever_their_modes(
    daemon: Daemon, stubs: Path, uid: int, name: str
) -> None:
    socket = daemon.run_dir / name
    with open_to_all(daemon.run_dir, socket):
        stranger = user(stubs, uid)
        assert reached(stranger, [socket]) == {str(socket): "ok"}
        assert stranger.run(socket, "whoami")[0].get("error")
        assert {line["code"] for line in stranger.run(socket, "person", "Status", "VaultList")} & {"OK"} == set()
    itself = user(stubs, None).run(socket, "whoami")[0]
    assert (itself["socket"], itself.get("uid", 0)) == (name.removesuffix(".sock"), 0)
