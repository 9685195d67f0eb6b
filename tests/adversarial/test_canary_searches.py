"""The searches for the canary, each shown to find what lies in the kind of place where it looks, in every encoding."""

from __future__ import annotations

import gzip
import io
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.adversarial.canary_scene import Scene, scene_fixture  # noqa: F401  a fixture
from tests.adversarial.hunting import FORMS, Hunt, Planted, token, told, written
from tests.adversarial.hunting_docker import ContainerHunt, image
from tests.support.waiting import until

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can look into every process and container"),
]


@pytest.fixture
def control(scene: Scene, tmp_path: Path) -> Iterator[tuple[ContainerHunt, dict[str, Planted]]]:
    """A container of the same image with bait in each place where a container can hold something."""
    baits = {place: Planted() for place in ContainerHunt(scene.client, "").searches}
    files = {name: tmp_path / name for name in ("job", "hidden")}
    for folder in files.values():
        folder.mkdir()
    (files["job"] / "bait").write_text(baits["archive of the job's files"].text)
    (files["hidden"] / "bait").write_bytes(bytes(byte ^ 0xFF for byte in baits["memory"].text.encode()))
    named = tmp_path / baits["mounts"].text.replace(" ", "/")
    named.mkdir(parents=True)
    program = (
        "import ctypes, sys, time\n"
        "held = bytes(byte ^ 255 for byte in open('/hidden/bait', 'rb').read())\n"
        "open('/tmp/bait', 'w').write(sys.argv[2]); open('/var/tmp/bait', 'w').write(sys.argv[3])\n"
        "ctypes.CDLL(None).prctl(15, sys.argv[5].encode(), 0, 0, 0)\n"
        "print(sys.argv[4], flush=True); time.sleep(60)"
    )
    places = ("arguments", "mounted filesystems", "exported filesystem", "logs")
    client = scene.client
    bind: dict[str, Mapping[str, str]] = {str(path): {"bind": at, "mode": "ro"} for path, at in
            ((files["job"], "/goex/job"), (files["hidden"], "/hidden"), (named, "/named"))}  # fmt: skip
    made = client.create_container(
        scene.image,
        entrypoint=["/usr/bin/python3", "-c", program],
        command=[*(baits[place].text for place in places), "bait"],
        environment={"BAIT": baits["environment"].text},
        labels={"bait": baits["inspect"].text, "more": baits["the engine's folder"].text},
        host_config=client.create_host_config(tmpfs={"/tmp": "rw"}, binds=bind, network_mode="none"),
    )["Id"]
    try:
        client.start(made)
        until(lambda: baits["logs"].text.encode() in client.logs(made), "the bait in the log")
        baits["the rest of /proc"] = baits["environment"]  # it is a part of that
        yield ContainerHunt(client, made), baits
    finally:
        client.remove_container(made, force=True, v=True)


def test_a_hunt_finds_every_form(tmp_path: Path) -> None:
    value = token()
    hunt, shown = Hunt(value), {**written(value), "utf-16": value}
    for form in FORMS:
        lies = shown[form].encode("utf-16-le" if form == "utf-16" else "utf-8")
        for data in (lies, zlib.compress(b"x" + lies), b"x" + gzip.compress(lies)):
            assert form in hunt.pieces(data)[value]
        for cut in range(len(lies)):
            assert form in hunt.chunks([b"x" * 99 + lies[:cut], lies[cut:]])[value]
        (tmp_path / form).write_bytes(b"x" + lies)
    assert hunt.tree(tmp_path)[value] >= set(FORMS)
    assert hunt.pieces(token().encode())[value] == set()


def test_every_search_of_a_container_finds_what_lies_there(
    scene: Scene, control: tuple[ContainerHunt, dict[str, Planted]]
) -> None:
    container, baits = control
    for place, search in container.searches.items():
        found = search(Hunt(baits=[baits[place]]))
        assert baits[place].missed(found) == [], place


def test_the_search_of_an_image_finds_what_lies_in_a_layer(scene: Scene) -> None:
    bait, layer = Planted(), io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        entry = tarfile.TarInfo("bait")
        entry.size = len(bait.text)
        tar.addfile(entry, io.BytesIO(bait.text.encode()))
    tag = f"goex-test-bait:{secrets.token_hex(4)}"
    scene.client.import_image_from_data(layer.getvalue(), repository=tag.split(":")[0], tag=tag.split(":")[1])
    try:
        assert bait.missed(image(scene.client, tag)(Hunt(baits=[bait]))) == []
    finally:
        scene.client.remove_image(tag, force=True)


def test_the_search_of_the_daemons_files_finds_what_lies_in_each(scene: Scene, tmp_path: Path) -> None:
    copy = tmp_path / "home"
    shutil.copytree(scene.daemon.home, copy, ignore=lambda top, names: [n for n in names if Path(top, n).is_socket()])
    baits = {path: Planted() for path in copy.rglob("*") if path.is_file()}
    assert {"state.db", "state.db-wal", "journal.head", "vault.db", "daemon.out"} <= {path.name for path in baits}
    found = Hunt(baits=baits.values())
    for path, bait in baits.items():
        with path.open("ab") as file:
            file.write(b"\n" + bait.text.encode())
    got = found.tree(copy)
    assert {path.name: bait.missed(got) for path, bait in baits.items() if bait.missed(got)} == {}


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("state.db", "insert into records values ('a-0', 'bait', ?)"),
        ("vault.db", "update header set parameters = ?"),
    ],
)
def test_the_search_of_a_database_finds_what_lies_in_a_row(
    scene: Scene, tmp_path: Path, name: str, statement: str
) -> None:
    bait = Planted()
    with sqlite3.connect(scene.daemon.state_dir / name) as source, sqlite3.connect(tmp_path / name) as copy:
        source.backup(copy)
        # Longer than a page, so that no form of it lies in one piece in the file.
        copy.execute(statement, (bait.text,))
        copy.execute("create table longer (bait blob)")
        copy.execute("insert into longer values (?)", (b"x" * 4000 + bait.text.encode() + b"x" * 9000,))
    for connection in (source, copy):
        connection.close()
    assert bait.missed(Hunt(baits=[bait]).database(tmp_path / name)) == []


def test_the_search_of_a_process_finds_what_lies_there(tmp_path: Path) -> None:
    baits = {name: Planted() for name in ("environ", "cmdline", "handle")}
    handle = tmp_path / baits["handle"].text.replace(" ", "/")
    handle.parent.mkdir(parents=True)
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", baits["cmdline"].text],
        env={"BAIT": baits["environ"].text},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=handle.open("w"),
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        for name, bait in baits.items():
            assert bait.missed(Hunt(baits=[bait]).pieces(told(process.pid))) == [], name
        process.kill()
