"""What `make unit` runs stays without Docker and servers: the hook refuses both while a unit test runs."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests import unit


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit, "_watched", True)


def test_a_unit_test_opens_no_listening_socket(watched: None, tmp_path: Path) -> None:
    with socket.socket() as made, pytest.raises(unit.NotAUnitTest, match="listens"):
        made.bind(("127.0.0.1", 0))
    with socket.socket(socket.AF_UNIX) as made, pytest.raises(unit.NotAUnitTest, match="listens"):
        made.bind(str(tmp_path / "a.sock"))


def test_a_unit_test_speaks_to_no_docker_engine(watched: None) -> None:
    with socket.socket(socket.AF_UNIX) as made, pytest.raises(unit.NotAUnitTest, match="Docker"):
        made.connect("/var/run/docker.sock")


def test_a_unit_test_starts_no_program_but_git(watched: None) -> None:
    with pytest.raises(unit.NotAUnitTest, match="starts"):
        subprocess.run([sys.executable, "-c", ""], check=True)
    subprocess.run(["git", "--version"], check=True, capture_output=True)


def test_other_tests_may(tmp_path: Path) -> None:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))


def test_every_file_of_the_list_is_there_and_no_other_kind_of_test_is_marked(request: pytest.FixtureRequest) -> None:
    assert len(unit.FILES) > 30 and [str(file) for file in unit.FILES if not file.is_file()] == []
    assert not any(request.node.get_closest_marker(name) for name in ("unit",))
