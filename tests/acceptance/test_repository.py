"""The repository keeps its own rules: its folders, its locks, its generated code, and what no file may say."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "goex", "vault", "mapper", "runtimes", "policies", "protos", "sandbox-images", "tests", "tools", "clients",
    "examples",
)  # fmt: skip
FILES = (
    "pyproject.toml",
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
    "Makefile",
    ".ci/run",
    "requirements.lock",
    "requirements-dev.lock",
    "requirements-docs.lock",
    "requirements-synapse.lock",
)
LOCKS = sorted(ROOT.glob("requirements*.lock"))

# Written so that no pattern matches its own line.
REGISTRIES = re.compile(
    r"py[p]i[.](org|python[.]org)|python[h]osted[.]org|registry[.]n[p]mjs|registry-1[.]docker|index[.]docker[.]io"
    r"|deb[.]debian[.]org|security[.]debian[.]org|ghc[r][.]io|q[u]ay[.]io|static[.]crates[.]io|proxy[.]golang"
)
SOMEBODYS_FOLDER = re.compile(r"/(home|Users)/(?!you/|me/|user/|agent/|runner/)[a-z]\w+/|/ro[o]t/\w|[.]py[e]nv")


@cache
def tracked() -> list[Path]:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout, so what belongs to the project can't be told from what lies around")
    done = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def findings(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    """The lines in which it is found. None of our patterns goes beyond a line."""
    found = []
    for file in files:
        with suppress(UnicodeDecodeError):
            if pattern.search(text := file.read_text("utf-8")):
                lines = enumerate(text.splitlines(), 1)
                said = ((number, line.strip()[:120]) for number, line in lines if pattern.search(line))
                found += [f"{file.relative_to(ROOT)}:{number}: {line}" for number, line in said]
    return found


@pytest.mark.parametrize("name", FOLDERS)
def test_the_fixed_folders_are_there(name: str) -> None:
    assert (ROOT / name).is_dir()


@pytest.mark.parametrize("name", FILES)
def test_the_fixed_files_are_there_and_say_something(name: str) -> None:
    assert len((ROOT / name).read_text()) > 200


def test_there_is_no_other_code_at_the_top() -> None:
    top = {file.relative_to(ROOT).parts[0] for file in tracked() if len(file.relative_to(ROOT).parts) > 1}
    assert top - {".ci", "docs"} <= set(FOLDERS)
    docs = [file for file in tracked() if file.relative_to(ROOT).parts[0] == "docs"]
    assert {file.suffix for file in docs} <= {".svg", ".md", ".png"}
    assert [file.name for file in docs if file.suffix == ".png" and file.stat().st_size > 100_000] == []


def test_no_file_names_a_registry() -> None:
    assert findings(REGISTRIES, tracked()) == []


def test_no_file_names_a_folder_of_the_machine_where_it_was_written() -> None:
    places = [str(place) for place in (ROOT, Path(sys.prefix)) if len(place.parts) > 2]
    here = re.compile("|".join(re.escape(place) + r"\b" for place in places))
    files = tracked()
    assert findings(SOMEBODYS_FOLDER, files) == []
    assert not places or findings(here, files) == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (REGISTRIES, "--index-url https://" + "py" + "pi.org/simple"),
        (REGISTRIES, "http://deb" + ".debian.org/debian bookworm main"),
        (SOMEBODYS_FOLDER, "sys.path.insert(0, '/home/" + "alex/src')"),
        (SOMEBODYS_FOLDER, "/ro" + "ot/src/x"),
    ],
)
def test_the_patterns_find_what_they_are_for(pattern: re.Pattern[str], line: str, tmp_path: Path) -> None:
    assert pattern.search(line)


def test_every_folder_of_tests_is_a_package() -> None:
    folders = {
        file.parent for file in tracked() if file.parts[len(ROOT.parts)] in ("tests", "tools") and file.suffix == ".py"
    }
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_our_packages_say_that_they_are_typed() -> None:
    assert [name for name in FOLDERS[:5] if not (ROOT / name / "py.typed").exists()] == []


def test_packages_re_export_nothing() -> None:
    """A re-export would load what an import contract forbids, while the contract stays green."""
    inits = [file for name in FOLDERS[:5] for file in (ROOT / name).rglob("__init__.py")]
    assert len(inits) >= 5
    for file in inits:
        imports = [
            node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        assert all(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in imports), file


# Locks.


def pinned(lock: Path) -> dict[str, str]:
    """Requirement → version, of every requirement line. Fails on a line that is neither pin, hash nor comment."""
    found = {}
    for line in lock.read_text().replace("\\\n", " ").splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        matched = re.fullmatch(r"([A-Za-z0-9._-]+)==(\S+)((?:\s+--hash=sha256:[0-9a-f]{64})+)", line)
        assert matched, f"{lock.name}: {line[:100]}"
        found[matched[1].lower().replace("_", "-").replace(".", "-")] = matched[2]
    return found


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_holds_versions_and_hashes_and_no_address(lock: Path) -> None:
    least = 10 if lock.name == "requirements-docs.lock" else 20  # MkDocs alone needs fewer
    assert len(pinned(lock)) > least
    assert "://" not in lock.read_text()
    assert not re.search(r"^\s*-", lock.read_text().replace("\\\n", ""), re.MULTILINE)


def test_the_development_lock_agrees_with_the_run_time_lock() -> None:
    run_time, development = pinned(ROOT / "requirements.lock"), pinned(ROOT / "requirements-dev.lock")
    assert run_time.items() <= development.items()


def test_the_locks_hold_what_the_project_declares() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    def names(requirements: list[str]) -> set[str]:
        return {re.match(r"[A-Za-z0-9._-]+", one)[0].lower().replace("_", "-") for one in requirements}  # type: ignore[index]

    assert names(project["dependencies"]) <= pinned(ROOT / "requirements.lock").keys()
    extras = project["optional-dependencies"]
    declared = names(project["dependencies"] + extras["dev"]) | {"hatchling"}
    assert declared <= pinned(ROOT / "requirements-dev.lock").keys()
    # What few use and many megabytes take is an extra, and the developers have each extra.
    rare = names(extras["google"] + extras["mcp"] + extras["model"])
    assert rare <= names(extras["dev"]) and not rare & pinned(ROOT / "requirements.lock").keys()


def test_no_sqlite_is_taken_that_deletes_files_which_a_journal_names() -> None:
    """Before 3.54 it does. A journal that names one is refused, but may come after it was looked for."""
    import tomllib

    from packaging.requirements import Requirement

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    apsw = next(found for found in map(Requirement, declared) if found.name == "apsw")
    assert not apsw.specifier.contains("3.53.4.0")
    assert apsw.specifier.contains(pinned(ROOT / "requirements.lock")["apsw"])


# What is asked for.

ASKED = """
say() { :; }
die() { echo "die $*" >&2; exit 1; }
is_root() { true; }
is_debian() { true; }
find_python() { PYTHON=python3; }
apt_install() { echo "$*" | tr ' ' '\\n' >>asked; }
make_venv() { echo "$2" >>asked; }
quiet() { shift; echo "$*" >>asked; }
demo_venv() { echo .cache/demo; }
"""


def asked(folder: Path, *arguments: str) -> set[str]:
    """What .ci/services would install on a Debian that has nothing yet, as root: packages, locks and commands."""
    for name in (".ci/services", ".venv/bin/python", ".cache/demo/bin/python", "bin/unpack"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / ".ci" / "services", folder / ".ci")
    (folder / ".ci" / "lib.sh").write_text(ASKED)
    for venv in (".venv", ".cache/demo"):  # an engine answers
        (folder / venv / "bin" / "python").write_text("#!/bin/sh\ncat >/dev/null\n")
        (folder / venv / "bin" / "python").chmod(0o755)
    for tool in ("sh", "cat", "dirname", "mkdir", "tr", "ls", "sed"):
        place = shutil.which(tool)
        assert place is not None
        (folder / "bin" / tool).symlink_to(place)
    command = ["sh", ".ci/services", *arguments]
    done = subprocess.run(command, cwd=folder, env={"PATH": str(folder / "bin")}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set((folder / "asked").read_text().splitlines())


def test_the_demo_asks_for_less_than_the_tests(tmp_path: Path) -> None:
    demo, tests = asked(tmp_path / "demo", "demo"), asked(tmp_path / "tests")
    everywhere = {one.replace(".cache/demo/", ".venv/") for one in demo}
    assert everywhere == {"debootstrap", ".venv/bin/goex images build", "requirements-synapse.lock"}
    assert everywhere < tests and {"mariadb-server", "chromium-headless-shell", "xvfb", "strace"} <= tests
    # Where no developers' environment is, the demo makes one of the run-time lock, which holds fewer packages.
    assert 'make_venv "$venv" requirements.lock demo' in (ROOT / ".ci" / "demo").read_text()
    assert len(pinned(ROOT / "requirements.lock")) < len(pinned(ROOT / "requirements-dev.lock"))
    recipes = (ROOT / "Makefile").read_text()
    assert re.search(r"^demo: ##.*\n\t@\$\(SIGNALS\) \.ci/demo \$\(ARGS\)$", recipes, re.MULTILINE)


# The wheel.


def test_the_wheel_holds_all_that_runs_and_nothing_else(tmp_path: Path) -> None:
    for name in (*FOLDERS[:7], "pyproject.toml", "README.md", "LICENSE"):
        source, ignored = ROOT / name, shutil.ignore_patterns("__pycache__")
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=ignored)
        else:
            shutil.copy(source, tmp_path / name)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q", "--no-deps", "--no-index"]
    subprocess.run([*command, "--no-build-isolation", "-w", "dist", "."], cwd=tmp_path, check=True, timeout=550)
    (wheel,) = (tmp_path / "dist").glob("goex-*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    ours = {str(file.relative_to(ROOT)) for file in tracked() if file.relative_to(ROOT).parts[0] in FOLDERS[:5]}
    assert ours - held == set()
    images = {str(file.relative_to(ROOT / "sandbox-images")) for file in tracked() if "sandbox-images" in file.parts}
    assert {f"runtimes/sandbox/images/{name}" for name in images} <= held
    assert {name.split("/")[0] for name in held if ".dist-info" not in name} == set(FOLDERS[:5])


# Generated code.


def check_protos(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "protos" / "generate.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_the_generated_code_is_what_the_proto_says() -> None:
    assert check_protos(ROOT).returncode == 0


def test_a_changed_proto_is_noticed() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(ROOT / "protos", Path(scratch) / "protos")
        shutil.copytree(ROOT / "goex" / "rpc", Path(scratch) / "goex" / "rpc")
        shutil.copytree(ROOT / "clients", Path(scratch) / "clients", ignore=shutil.ignore_patterns("node_modules"))
        assert check_protos(Path(scratch)).returncode == 0
        proto = Path(scratch) / "protos" / "goex" / "v1" / "goex.proto"
        proto.write_text(proto.read_text().replace("string message = 2;", "string text = 2;", 1))
        done = check_protos(Path(scratch))
        assert done.returncode == 1
        assert "make protos" in done.stderr
