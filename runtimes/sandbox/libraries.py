"""Python libraries for an image: resolved and fetched by this machine's own pip, with the index that it is set up for.

Rules: wheels only, and pip starts no program, so that nobody's setup code runs here; what goes into an image is named
by version and hash, and pip refuses anything else; nothing is fetched when a container runs. The image's interpreter is
not this one: pip is told which.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from policies.display_text import escape
from policies.errors import InvalidInput, Unavailable

PYTHON = "3.11"  # Debian bookworm's
_GLIBC = 36  # its C library is 2.36
_SECONDS = 900
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[A-Za-z0-9._,\s-]*\])?\s*[^@:/]*\Z")
_OPTION = re.compile(r"\s--hash=sha256:[0-9a-f]{64}\b")
_PINNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.!+_-]+(?:[ \t]+--hash=sha256:[0-9a-f]{64})+")
# pip starts programs to build a source archive, which it does for one that a wheel names by its address, whatever the
# index may give, and to clone a repository. What it asks for a password, or of the system, does no harm.
_WITHOUT_BUILDS = """\
import os, runpy, sys

def look(event, args):
    if event == "subprocess.Popen" and os.path.basename(str(args[1][0])) not in ("keyring", "lsb_release", "rustc"):
        raise OSError("a library is no wheel, and would be built by code of its own")

sys.addaudithook(look)
runpy.run_module("pip", run_name="__main__")
"""

Progress = Callable[[str], None]


def fetch(pinned: bytes, folder: Path, progress: Progress = lambda line: None) -> None:
    """Unpack what `pinned` names (versions with hashes) into `folder`. Raises InvalidInput for a line of it that says
    anything else, Unavailable when pip can't get it."""
    lines = _pins(pinned)
    with tempfile.TemporaryDirectory(prefix="goex-pip-") as scratch:
        file = Path(scratch, "requirements.txt")
        file.write_text("".join(f"{line}\n" for line in lines))  # no comment: pip takes an encoding from one
        progress(f"Fetching {len(lines)} Python libraries with pip.")
        _pip(["install", *_target(folder), "--no-deps", "--require-hashes", "--no-compile", "-r", str(file)])
    shutil.rmtree(folder / "bin", ignore_errors=True)  # commands for this machine's interpreter


def resolve(wanted: Sequence[str], progress: Progress = lambda line: None) -> bytes:
    """The versions and hashes of everything that `wanted` (requirement lines) takes, as a requirements file.

    Raises InvalidInput when no set of wheels fits, Unavailable without pip.
    """
    with tempfile.TemporaryDirectory(prefix="goex-pip-") as scratch:
        file, report = Path(scratch, "requirements.in"), Path(scratch, "report.json")
        file.write_text("\n".join(wanted) + "\n")
        progress("Finding the versions with pip.")
        found = [*_target(Path(scratch, "site")), "--dry-run", "--ignore-installed", "--report", str(report)]
        try:
            _pip(["install", *found, "-r", str(file)])
        except Unavailable as error:
            raise InvalidInput(error.message, next_step=error.next_step) from error
        return _pinned(json.loads(report.read_text()))


def lines_of(text: str) -> tuple[str, ...]:
    """The requirements of a file. Raises InvalidInput for what isn't a plain name with versions: a link, a folder, or
    an option would bring in code by another way than the index's wheels."""
    found = _lines(text)
    for line in found:
        named = _OPTION.sub("", line).strip()
        if not _PLAIN.match(named) or re.search(r"[\s;]-", named):
            raise InvalidInput(
                f"{escape(line[:100])!r} isn't a plain requirement.",
                next_step="Name libraries with versions, one a line, such as: pandas>=2",
            )
    return found


def _lines(text: str) -> tuple[str, ...]:
    """The lines that say something, without comments."""
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.replace("\\\n", " ").splitlines())
    return tuple(line for line in lines if line)


def _pins(pinned: bytes) -> tuple[str, ...]:
    """The lines of a file that `resolve` made. An option among them would overrule those of the command, and setup code
    run here. Raises InvalidInput."""
    lines = _lines(pinned.decode("utf-8", "replace"))
    for line in lines:
        if not _PINNED.fullmatch(line):
            raise InvalidInput(f"{escape(line[:100])!r} doesn't name a Python library by version and hash.")
    return lines


def _pinned(report: dict[str, Any]) -> bytes:
    made = []
    for each in report["install"]:
        name, version = each["metadata"]["name"], each["metadata"]["version"]
        archive = each["download_info"]["archive_info"]
        # Before 23.1, as on Debian 12, pip said one hash, as `sha256=…`.
        digest = archive["hashes"]["sha256"] if "hashes" in archive else archive["hash"].removeprefix("sha256=")
        made.append(f"{name.lower()}=={version} --hash=sha256:{digest}\n")
    return "".join(sorted(made)).encode()


def _target(folder: Path) -> list[str]:
    machine = {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    tags = [f"manylinux_2_{minor}" for minor in range(_GLIBC, 4, -1)] + ["manylinux2014", "manylinux2010", "manylinux1"]
    platforms = [part for tag in tags for part in ("--platform", f"{tag}_{machine}")]
    return ["--target", str(folder), *platforms, "--python-version", PYTHON, "--implementation", "cp"]


def _pip(arguments: list[str]) -> None:
    """Run pip as it is set up on this machine. Raises Unavailable with its own words."""
    if importlib.util.find_spec("pip") is None:
        raise Unavailable(
            "pip isn't there, and an image's Python libraries are fetched with it.",
            next_step="Run: pipx inject goex pip, or uv tool install --with pip goex; "
            f"elsewhere: {sys.executable} -m ensurepip",
        )
    command = [sys.executable, "-I", "-c", _WITHOUT_BUILDS, *arguments]
    command += ["--only-binary=:all:", "--no-input", "--quiet", "--disable-pip-version-check"]
    # It takes no folder of the user's, and another target than the one named makes no sense.
    environment = {**os.environ, "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
    environment.pop("PIP_TARGET", None)
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"pip didn't come to an end: {type(error).__name__}.", next_step="Try again.") from error
    if done.returncode != 0:
        said = [line for line in done.stderr.decode(errors="replace").splitlines() if line.startswith("ERROR")]
        why = escape(" ".join(said).replace("ERROR: ", ""))[:500] or f"it ended with {done.returncode}"
        raise Unavailable(
            f"pip couldn't get the libraries as wheels for Python {PYTHON}: {why}",
            next_step="See that pip reaches its index, and that the versions exist as wheels.",
        )
