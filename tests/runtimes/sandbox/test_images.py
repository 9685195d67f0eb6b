"""Images are named by their content, built the same way every time, and found in a checkout and in a wheel."""

from __future__ import annotations

import io
import os
import re
import stat
import subprocess
import tarfile
import venv
from pathlib import Path

import docker
import pytest

from policies.errors import InvalidInput, Unavailable
from runtimes.sandbox import base, images
from runtimes.sandbox.contract import Job, Profile
from runtimes.sandbox.docker import DockerSandbox


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of images of the test's own, with one image that can't be built."""
    made = tmp_path / "own"
    (made / "sub").mkdir(parents=True)
    (made / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\nRUN exit 7\n")
    (made / "sub" / "a.py").write_text("a = 1\n")
    monkeypatch.setattr(images, "_PLACES", (tmp_path / "nowhere", tmp_path))
    return made


def packed_bytes() -> bytes:
    """The build context of the test's own image."""
    into = io.BytesIO()
    images.pack(images.content("own"), into)
    return into.read()


@pytest.mark.parametrize("name", ["", "..", "../base", "base/", "/etc", "Base", "base\n", "nope", "a" * 100])
def test_unknown_names(name: str) -> None:
    with pytest.raises(InvalidInput, match="no sandbox image"):
        images.folder(name)


def test_the_base_image_is_there() -> None:
    assert "base" in images.names()
    assert {"Dockerfile", "supervise", "etc/nsswitch.conf"} <= set(images.content("base"))


def test_no_library_runs_while_an_image_is_built(tmp_path: Path) -> None:
    """Whoever builds is root and has the machine's network, and an interpreter runs any library's *.pth when it
    starts."""
    recipe = images.content("code")["Dockerfile"].decode()
    commands = re.findall(r"\bpython3 [^;&|]*", recipe.partition("COPY site/")[2])
    venv.create(tmp_path / "venv", symlinks=True)
    (site,) = tmp_path.glob("venv/lib/python*/site-packages")
    (site / "hostile.pth").write_text(f"import os; open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    (site / "library.py").write_text("a = 1\n")
    for command in commands:
        environment = {"PATH": f"{tmp_path}/venv/bin:/usr/bin:/bin"}
        subprocess.run(["/bin/sh", "-c", command], cwd=site, env=environment, check=True)
    assert list(site.glob("__pycache__/library.*.pyc"))
    assert not (tmp_path / "ran").exists()


def test_every_byte_and_name_counts(own: Path) -> None:
    assert images.names() == ("own",)
    seen = {images.tag("own")}
    for change in ("sub/a.py", "sub/b.py", "Dockerfile"):
        with (own / change).open("a") as file:
            file.write("#\n")
        seen.add(images.tag("own"))
    (own / "sub" / "a.py").rename(own / "sub" / "c.py")
    seen.add(images.tag("own"))
    assert len(seen) == 5


def test_the_bases_recipe_counts(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = images.tag("own")
    monkeypatch.setattr(base, "RECIPE", "another")
    assert images.tag("own") != before


def test_caches_links_hidden_files_and_modes_do_not_count(own: Path) -> None:
    before, packed = images.tag("own"), packed_bytes()
    (own / "sub" / "__pycache__").mkdir()
    (own / "sub" / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"x")
    (own / ".hidden").write_text("x")
    (own / "passwd").symlink_to("/etc/passwd")
    (own / "sub" / "a.py").chmod(0o777)
    os.utime(own / "sub" / "a.py", (1, 1))
    assert (images.tag("own"), packed_bytes()) == (before, packed)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert {(member.name, member.mode, member.uid) for member in archive} == {
            ("Dockerfile", 0o444, 0),
            ("sub/a.py", 0o444, 0),
        }


@pytest.mark.docker
def test_an_image_that_is_not_built_names_the_command(own: Path) -> None:
    client = docker.APIClient(version="auto")
    try:
        with pytest.raises(Unavailable, match="out of date") as caught:
            images.find(client, "own")
    finally:
        client.close()
    assert "goex images build" in caught.value.next_step


@pytest.mark.docker
def test_a_moved_tag_is_not_trusted(own: Path, sandbox_image: str) -> None:
    client = docker.APIClient(version="auto")
    repository, tag = images.tag("own").split(":")
    client.tag(sandbox_image, repository, tag)
    try:
        with pytest.raises(Unavailable, match="isn't one that GoEx built"):
            images.find(client, "own")
    finally:
        client.remove_image(f"{repository}:{tag}")
        client.close()


@pytest.mark.docker
def test_a_build_that_fails_says_so(own: Path, sandbox_image: str) -> None:
    lines: list[str] = []
    with pytest.raises(Unavailable, match="returned a non-zero code: 7"):
        images.build("own", lines.append)
    assert lines


@pytest.mark.docker
async def test_the_image_lends_no_rights_and_names_no_machine(sandbox_image: str) -> None:
    sandbox = DockerSandbox(f"test-images-{os.getpid()}")
    code = (
        "find / -xdev \\( -type f -perm /6000 -o -type b -o -name '*.deb' \\) 2>/dev/null; cat /etc/machine-id; "
        "find / -xdev -type d -perm -2 2>/dev/null | sort; ls -l /goex/bin | grep -v -e '^-r--r--r--' -e ^total; "
        "test -e /goex/bin/shim.py && echo shim"
    )
    result = await sandbox.run(Job(action_id="a", argv=["sh", "-c", code]), Profile())
    await sandbox.close()
    assert result.stdout.decode().split() == ["/tmp", "/var/tmp", "shim"]


def test_packing_leaves_out_what_a_container_must_not_have(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("etc", "usr/bin", "usr/share/doc/x", "var/lib/apt/lists", "dev", "tmp"):
        (root / name).mkdir(parents=True)
    (root / "etc/machine-id").write_text("0123\n")
    (root / "usr/bin/su").write_text("x")
    (root / "usr/bin/su").chmod(0o6755)
    (root / "usr/share/doc/x/readme").write_text("x")
    (root / "var/lib/apt/lists/list").write_text("x")
    (root / "tmp/left").write_text("x")
    (root / "usr/bin/sh").symlink_to("dash")
    base.pack(root, tmp_path / "out.tar")
    with tarfile.open(tmp_path / "out.tar") as archive:
        members = {member.name: member for member in archive}
    files = {name for name, member in members.items() if not member.isdir()}
    assert files == {"etc/machine-id", "usr/bin/su", "usr/bin/sh"}
    assert members["etc/machine-id"].size == 0
    assert stat.S_IMODE(members["usr/bin/su"].mode) == 0o755
    assert {"tmp", "dev"} <= set(members)


def test_without_a_registry_and_without_debootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_present", lambda client, image: None)
    monkeypatch.setattr(base, "_pulled", lambda progress: False)
    monkeypatch.setattr(base.shutil, "which", lambda name: None)
    with pytest.raises(Unavailable, match="takes root and debootstrap") as caught:
        base.ensure(object(), print)  # type: ignore[arg-type]
    assert "apt-get install debootstrap" in caught.value.next_step


def test_a_debootstrap_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unshare").write_text("#!/bin/sh\necho 'E: no \x1b[31mmirror'\nexit 1\n")
    (tmp_path / "unshare").chmod(0o755)
    real = subprocess.Popen
    monkeypatch.setattr(
        base.subprocess, "Popen", lambda command, **rest: real([tmp_path / "unshare", *command[1:]], **rest)
    )
    lines: list[str] = []
    with pytest.raises(Unavailable, match="no") as caught:
        base._run_debootstrap(tmp_path / "root", lines.append)
    assert "\x1b" not in caught.value.message
    assert lines
