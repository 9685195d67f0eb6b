"""The person's own profiles: pinned when they are made, built beforehand, and nothing that runs code of theirs here."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from hashlib import sha256, sha512
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any

import docker
import pytest
from typer.testing import CliRunner

from goex.cli.main import named
from policies.actions import Language
from policies.errors import Conflict, ExitStatus, InvalidInput, Unavailable
from runtimes.code import environment
from runtimes.sandbox import image_removal, images, libraries, node_modules, profiles
from runtimes.sandbox.contract import Profile
from runtimes.sandbox.docker import DockerSandbox

NAME = f"test-own-{os.getpid()}"  # another run on this machine may remove its own meanwhile
BELOW = {"packages": b"curl\n", "requirements.in": b"# ours\n"}


def wheel(folder: Path, name: str, version: str = "1.0", needs: str = "", content: str = "") -> Path:
    """A wheel of a library that is in no index."""
    made = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    with zipfile.ZipFile(made, "w") as packed:
        packed.writestr(f"{name}.py", content or f"said = '{name} {version}'\n")
        packed.writestr(f"{info}/METADATA", metadata + (f"Requires-Dist: {needs}\n" if needs else ""))
        packed.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr(f"{info}/RECORD", "")
    return made


def archive(folder: Path, mark: Path) -> Path:
    """A source archive of a library, whose build makes the file `mark`."""
    made = folder / "goexsdist-1.0.zip"
    runs = f"open({str(mark)!r}, 'w')\n"
    with zipfile.ZipFile(made, "w") as packed:
        packed.writestr("goexsdist-1.0/setup.py", runs)
        packed.writestr("goexsdist-1.0/backend.py", runs)
        build = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
        packed.writestr("goexsdist-1.0/pyproject.toml", build)
        packed.writestr("goexsdist-1.0/PKG-INFO", "Metadata-Version: 2.1\nName: goexsdist\nVersion: 1.0\n")
    return made


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, which is all that pip is set up to know."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_what_is_wanted_is_pinned_with_all_that_it_needs(tmp_path: Path, index: Path) -> None:
    first, second = wheel(index, "goexone", needs="goextwo>=1"), wheel(index, "goextwo", "1.5")
    wheel(index, "goextwo", "0.9")
    profiles.add(tmp_path / "own", NAME, "goexone  # the first\n\n# none\n", ["jq"], BELOW, ["base"])
    made = profiles.content(tmp_path / "own", NAME)
    assert made is not None
    assert made["requirements.txt"].decode().splitlines() == [
        f"goexone==1.0 --hash=sha256:{sha256(first.read_bytes()).hexdigest()}",
        f"goextwo==1.5 --hash=sha256:{sha256(second.read_bytes()).hexdigest()}",
    ]
    assert (made["packages"], made["requirements.in"]) == (b"curl\njq\n", b"goexone\n")
    assert profiles.names(tmp_path / "own") == (NAME,)
    whole, below = images.content(NAME, tmp_path / "own"), images.content("code")
    assert whole["Dockerfile"] == below["Dockerfile"]
    # A container that waits for a job loads nothing of it: no library runs before a program was allowed.
    assert below.keys() - whole.keys() == {"lib/preload.txt"}
    with pytest.raises(InvalidInput, match="no sandbox image"):
        images.content(NAME)


@pytest.mark.parametrize("name", ["base", "code", "mcp"])
def test_a_folder_among_the_profiles_is_never_one_of_ours(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    for file in ("packages", "requirements.txt", "requirements.in"):
        (tmp_path / name / file).write_text("")
    assert images.content(name, tmp_path) == images.content(name)
    assert images.tag(name, tmp_path) == images.tag(name)


def test_equal_pins_give_an_equal_build_context_and_another_file_is_refused(tmp_path: Path, index: Path) -> None:
    wheel(index, "goexone", needs="goextwo")
    wheel(index, "goextwo")
    pinned, packed = libraries.resolve(["goexone"]), []
    for number in range(2):
        site = tmp_path / f"site{number}"
        libraries.fetch(pinned, site)
        (site / "bin").mkdir(exist_ok=True)
        (site / "link.py").symlink_to("/etc/passwd")
        into = io.BytesIO()
        images.pack({"Dockerfile": b"FROM x\n"}, into, {"site": site})
        packed.append(into.getvalue())
        os.utime(site / "goexone.py", (1, 1))
    assert packed[0] == packed[1]
    with tarfile.open(fileobj=io.BytesIO(packed[0])) as archive:
        found = {member.name: member.mode for member in archive}
    assert {"Dockerfile", "site/goexone.py", "site/goextwo.py"} <= set(found)
    assert set(found.values()) == {0o444}
    assert "site/link.py" not in found
    wheel(index, "goexone", needs="goextwo", content="said = 'swapped'\n")
    with pytest.raises(Unavailable, match="DO NOT MATCH"):
        libraries.fetch(pinned, tmp_path / "again")
    with pytest.raises(InvalidInput, match="by version and hash"):
        libraries.fetch(b"goexone==1.0\n", tmp_path / "unpinned")


def test_nobodys_setup_code_runs(tmp_path: Path, index: Path) -> None:
    """A source archive would be built by its own code, on this machine, with the person's rights."""
    mark = tmp_path / "ran"
    source = archive(index, mark)
    with pytest.raises(InvalidInput, match="as wheels for Python"):
        profiles.add(tmp_path / "own", NAME, "goexsdist\n", [], BELOW, [])
    pinned = f"goexsdist==1.0 --hash=sha256:{sha256(source.read_bytes()).hexdigest()}\n".encode()
    with pytest.raises(Unavailable):
        libraries.fetch(pinned, tmp_path / "site")
    assert not mark.exists()
    assert profiles.names(tmp_path / "own") == ()


def test_nor_that_of_an_archive_which_a_wheel_needs_by_its_address(tmp_path: Path, index: Path) -> None:
    """No setting of pip's keeps it from building one of those."""
    mark = tmp_path / "ran"
    wheel(index, "goexone", needs=f"goexsdist @ {archive(tmp_path, mark).as_uri()}")
    with pytest.raises(InvalidInput, match="is no wheel"):
        libraries.resolve(["goexone"])
    assert not mark.exists()


@pytest.mark.docker
def test_what_somebody_else_wrote_into_a_profile_reaches_neither_pip_nor_apt_nor_npm(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ran a program of its writer's, on this machine or in a build that has its network."""
    for variable, folder in (("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config"), ("XDG_RUNTIME_DIR", "run")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    mark, ran = tmp_path / "mark", tmp_path / "ran"
    source = archive(tmp_path, mark)
    pinned = f"goexsdist==1.0 --hash=sha256:{sha256(source.read_bytes()).hexdigest()}\n"
    repository = _repository(tmp_path, ran)
    evil = {"version": "1.0.0", "resolved": repository, "integrity": "sha512-AAAA"}
    lock = {"lockfileVersion": 3, "packages": {"": {"dependencies": {"evil": "1.0.0"}}, "node_modules/evil": evil}}
    good = {"requirements.in": "", "requirements.txt": "", "packages": "jq\n"}
    profile = tmp_path / "state" / "goex" / "images" / NAME
    profile.mkdir(parents=True)
    for changed, told in (
        (
            {"requirements.txt": f"--no-binary :all:\n--no-index\n--find-links {tmp_path}\n{pinned}"},
            "--no-binary :all:",
        ),
        ({"requirements.txt": f"--no-index --find-links {tmp_path}\n{pinned}"}, "--no-index"),
        ({"requirements.txt": f"goexsdist @ {source.as_uri()} {pinned.partition(' ')[2]}"}, "goexsdist @ file"),
        ({"requirements.txt": f"{pinned.strip()} \\\n --no-binary=:all:\n"}, "goexsdist==1.0 --hash"),
        ({"packages": "jq\n-oDPkg::Pre-Invoke::=id\n"}, "-oDPkg::Pre-Invoke"),
        ({node_modules.LOCK: json.dumps(lock)}, "node_modules/evil comes from no registry"),
        ({node_modules.LOCK: "[]"}, "isn't as npm writes it"),
    ):
        for file in profile.iterdir():
            file.unlink()
        for name, text in {**good, **changed}.items():
            (profile / name).write_text(text)
        done = CliRunner().invoke(named(["images"]), ["images", "build", NAME, "--json"])
        assert not mark.exists() and not ran.exists(), told
        assert done.exit_code == ExitStatus.USAGE, done.output
        assert told in done.output
        assert f"Make it again: goex images remove {NAME}, then:" in done.output
    assert CliRunner().invoke(named(["images"]), ["images", "remove", NAME]).exit_code == 0


def _repository(folder: Path, ran: Path) -> str:
    """The address of a repository with a package, whose own settings name npm a program as its git: it makes `ran`."""
    other, made = folder / "other", folder / "evil"
    needs = {"dependencies": {"other": f"git+{other.as_uri()}"}, "scripts": {"prepare": f"touch {ran}"}}
    for place, more in ((other, {}), (made, needs)):
        place.mkdir()
        (place / "package.json").write_text(json.dumps({"name": place.name, "version": "1.0.0", **more}))
    (made / ".npmrc").write_text("git=./run\nignore-scripts=false\n")
    (made / "run").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (made / "run").chmod(0o755)
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@localhost")
    for place in (other, made):
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "t")):
            subprocess.run((*git, *words), cwd=place, check=True)
    said = subprocess.run(("git", "rev-parse", "HEAD"), cwd=made, check=True, capture_output=True)
    return f"git+{made.as_uri()}#{said.stdout.decode().strip()}"


@pytest.mark.parametrize(
    "line",
    [
        "-e .",
        "--index-url x",
        "-r other.txt",
        "./local",
        "/etc",
        "../x",
        "git+https://h/x",
        "x @ https://h/x.whl",
        "x@file:///x",
        "https://h/x.whl",
        "x --global-option=y",
        "x; --index-url=y",
        "C:\\x",
        "x \\\n--no-binary :all:",
    ],
)
def test_lines_that_bring_in_code_by_another_way(tmp_path: Path, line: str) -> None:
    with pytest.raises(InvalidInput, match="isn't a plain requirement"):
        profiles.add(tmp_path, NAME, f"requests\n{line}\n", [], BELOW, [])
    assert not (tmp_path / NAME).exists()


def test_plain_lines_pass() -> None:
    text = "pandas>=2,<3\nhttpx[http2] ~= 0.28 ; python_version >= '3.9' # why\nx==1 \\\n  --hash=sha256:" + "0" * 64
    assert len(libraries.lines_of(text)) == 3


@pytest.mark.parametrize("package", ["", "-o", "a b", "a;b", "$(x)", "A", "a/stable", "a=1"])
def test_names_of_packages(tmp_path: Path, package: str) -> None:
    with pytest.raises(InvalidInput, match="Debian package"):
        profiles.add(tmp_path, NAME, "", [package], BELOW, [])


@pytest.mark.parametrize("name", ["", "..", "A", "a/b", "-a", "a" * 60])
def test_names_of_profiles(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="profile's name"):
        profiles.add(tmp_path, name, "", ["jq"], BELOW, [])


def test_no_profile_takes_a_name_of_ours_or_one_that_is_there(tmp_path: Path, index: Path) -> None:
    with pytest.raises(Conflict):
        profiles.add(tmp_path, "base", "", ["jq"], BELOW, images.names())
    profiles.add(tmp_path, NAME, "", ["jq"], BELOW, images.names())
    with pytest.raises(Conflict):
        profiles.add(tmp_path, NAME, "", ["jq"], BELOW, images.names())
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o700
    profiles.remove(tmp_path, NAME)
    with pytest.raises(InvalidInput, match="no profile"):
        profiles.remove(tmp_path, NAME)


def test_without_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(libraries.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="pip isn't there") as caught:
        libraries.fetch(b"", tmp_path / "site")
    said = caught.value.next_step
    assert sys.executable in said and "pipx inject goex pip" in said and "uv tool install --with pip goex" in said


def test_the_lock_of_code_pins_every_library_by_hash() -> None:
    lines = libraries.lines_of(images.content("code")["requirements.txt"].decode())
    assert len(lines) > 30
    assert all("==" in line and "--hash=sha256:" in line for line in lines)
    names = {line.partition("==")[0].partition("[")[0].lower() for line in lines}
    wanted = libraries.lines_of(images.content("code")["requirements.in"].decode())
    asked = {re.split(r"[<>=!~\[]", line)[0].strip().lower() for line in wanted}
    assert {name.replace("_", "-") for name in asked} <= {name.replace("_", "-") for name in names}


class _Registry(BaseHTTPRequestHandler):
    """npm's registry, with one package: `goexone`, which says so."""

    packed = b""
    needs: Mapping[str, str] = MappingProxyType({})

    def do_GET(self) -> None:
        here = f"http://{self.headers['host']}"
        integrity = f"sha512-{base64.b64encode(sha512(self.packed).digest()).decode()}"
        version = {
            "name": "goexone",
            "version": "1.2.0",
            "dist": {"tarball": f"{here}/one.tgz", "integrity": integrity},
            "dependencies": dict(self.needs),
        }
        listed = {"name": "goexone", "dist-tags": {"latest": "1.2.0"}, "versions": {"1.2.0": version}}
        body = {"/one.tgz": self.packed, "/goexone": json.dumps(listed).encode()}.get(self.path, b"")
        self.send_response(200 if body else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Registry]]:
    if shutil.which("npm") is None:
        pytest.skip("no npm")
    told = {"name": "goexone", "version": "1.2.0", "main": "index.js", "scripts": {"install": f"touch {tmp_path}/ran"}}
    files = {"package.json": json.dumps(told), "index.js": "exports.said = 'goexone 1.2.0'\n"}
    _Registry.packed = _packed(files)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Registry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
        monkeypatch.setenv("npm_config_fetch_retries", "0")  # npm waits ten seconds and more before it tries again
        yield _Registry
        server.shutdown()


def _packed(files: dict[str, str]) -> bytes:
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return into.getvalue()


def test_packages_of_npm_are_locked_by_hash_and_run_nothing_here(
    tmp_path: Path, registry: type[_Registry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "npm_config_omit_lockfile_registry_resolved", "true"
    )  # then npm itself holds nothing to its hash
    lock = node_modules.lock(["goexone"])
    entry = json.loads(lock)["packages"]["node_modules/goexone"]
    assert (entry["version"], entry["integrity"][:7]) == ("1.2.0", "sha512-")
    app = tmp_path / "app"
    app.mkdir()
    assert (node_modules.fetch(lock, app) / "goexone" / "index.js").read_text().startswith("exports.said")
    assert not (tmp_path / "ran").exists()
    registry.packed = _packed({"package.json": '{"name": "goexone", "version": "1.2.0"}', "index.js": "// swapped\n"})
    shutil.rmtree(tmp_path / "npm")
    shutil.rmtree(app)
    app.mkdir()
    with pytest.raises(Unavailable, match="wanted sha512-"):
        node_modules.fetch(lock, app)
    loose = json.loads(lock)
    del loose["packages"]["node_modules/goexone"]["resolved"]
    with pytest.raises(InvalidInput, match="has no hash"):
        node_modules.fetch(json.dumps(loose).encode(), app)


def test_no_git_is_started_for_what_a_package_of_npm_needs(
    tmp_path: Path, registry: type[_Registry], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in a repository is prepared by an npm that reads its settings, which may name a program."""
    monkeypatch.setattr(registry, "needs", {"evil": _repository(tmp_path, tmp_path / "ran")})
    with pytest.raises(Unavailable, match="npm couldn't get"):
        node_modules.lock(["goexone"])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "place, change",
    [
        ("node_modules/../../goexone", {}),
        ("/tmp/node_modules/goexone", {}),
        ("goexone", {"link": True}),
        ("node_modules/goexone", {"link": True}),
        ("node_modules/goexone", {"resolved": "file:/tmp/goexone.tgz"}),
        ("node_modules/goexone", {"resolved": "git+ssh://h/x.git"}),
        ("node_modules/goexone", {"resolved": "git+https://h/x.git", "inBundle": True}),
        ("node_modules/goexone", {"integrity": ""}),
        ("node_modules/goexone", {"resolved": 1}),
        ("", {"dependencies": {"goexone": "git+https://h/x.git"}}),
    ],
)
def test_locks_that_npm_never_made(tmp_path: Path, place: str, change: dict[str, Any]) -> None:
    package = {"version": "1.0.0", "resolved": "https://h/x.tgz", "integrity": "sha512-AAAA"}
    lock = {"packages": {"": {"dependencies": {"goexone": "1.0.0"}}, place: {**package, **change}}}
    with pytest.raises(InvalidInput):
        node_modules.fetch(json.dumps(lock).encode(), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "package", ["", "-g", "--registry=x", "../x", "/x", "git+https://h/x", "https://h/x.tgz", "x@file:y", "a b", "A"]
)
def test_names_of_packages_of_npm(tmp_path: Path, package: str) -> None:
    with pytest.raises(InvalidInput, match="package of npm"):
        profiles.add(tmp_path, NAME, "", [], BELOW, [], npm=[package])
    assert not (tmp_path / NAME).exists()


@pytest.fixture
def removed() -> Iterator[None]:
    yield
    image_removal.forget(NAME, Path("waiting"))


@pytest.mark.docker
async def test_a_profile_from_the_command_to_a_program_and_away(
    tmp_path: Path,
    index: Path,
    registry: type[_Registry],
    monkeypatch: pytest.MonkeyPatch,
    code_image: str,
    removed: None,
) -> None:
    """The image's own libraries are left out here: what they take to build is `code`'s, and is built elsewhere. Its
    Debian packages are the same, so that the engine has that layer already."""
    wheel(index, "goexone")
    for variable, folder in (("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config"), ("XDG_RUNTIME_DIR", "run")):
        monkeypatch.setenv(variable, str(tmp_path / folder))
    small = {**images.content("code"), "requirements.in": b""}
    whole = images.content
    monkeypatch.setattr(images, "content", lambda name, own=None: small if name == "code" else whole(name, own))
    monkeypatch.setattr(images, "_named", {})  # or the small one's name is kept for the tests after this
    (tmp_path / "wanted.txt").write_text("goexone\n")
    run = CliRunner()

    def goex(*arguments: str) -> Any:
        done = run.invoke(named(["images"]), ["images", *arguments, "--json"], catch_exceptions=False)
        return json.loads(done.stdout)

    made = goex("add", NAME, "--requirements", str(tmp_path / "wanted.txt"), "--npm", "goexone@1.2.0")
    assert made["libraries"] == 1
    listed = {row["name"]: row for row in goex("list")["images"]}
    assert (listed[NAME]["of"], listed[NAME]["image"], listed["base"]["of"]) == ("yours", made["image"], "GoEx")
    own = tmp_path / "state" / "goex" / "images"
    sandbox = DockerSandbox(f"test-profiles-{os.getpid()}", profiles_dir=own)
    profile = Profile(image=NAME)
    programs: tuple[tuple[Language, str, bytes], ...] = (
        ("python", "import goexone; print(goexone.said)", b"goexone 1.0\n"),
        ("javascript", "import one from 'goexone'; console.log(one.said)", b"goexone 1.2.0\n"),
        ("javascript", "console.log(require('goexone').said)", b"goexone 1.2.0\n"),
    )
    for language, program, said in programs:
        job = environment.job(
            action_id="a",
            language=language,
            program=program,
            ca_pem="",
            socket_dir=os.devnull.rpartition("/")[0],
            env={},
        )
        assert (await sandbox.run(job, profile)).stdout == said, program
    # What it is made of changes: it isn't used any more until it was built anew.
    packages = (own / NAME / "packages").read_bytes()
    (own / NAME / "packages").write_text("nodejs\n")
    with pytest.raises(Unavailable, match="out of date") as caught:
        await sandbox.image_id(profile)
    assert caught.value.next_step == f"Run `goex images build {NAME}`."
    (own / NAME / "packages").write_bytes(packages)
    assert goex("remove", NAME)["images"] == 1
    with pytest.raises(InvalidInput, match="no sandbox image"):
        await sandbox.image_id(profile)
    await sandbox.close()
    client = docker.APIClient(version="auto")
    assert client.images(name=f"goex/{NAME}") == []
    client.close()
