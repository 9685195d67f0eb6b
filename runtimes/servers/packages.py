"""A published MCP server from npm or PyPI: its packages locked and fetched, and an image made of them.

Rules: everything is named by version and hash, and kept as a lock; no package's own scripts run on this machine, and
of Python wheels alone are taken; what the container starts is known here, so that nothing is looked up when it runs.
"""

from __future__ import annotations

import configparser
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from policies.display_text import escape
from policies.errors import InvalidInput
from runtimes.sandbox import image_removal, images, libraries, node_modules, profiles
from runtimes.servers.definition import Servers

APP = "/goex/app"
IMAGE = "mcp"  # of sandbox-images/
_OWN_IMAGE = re.compile(rf"{IMAGE}-[a-z0-9-]+:[0-9a-f]+")
_PYPI = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:(?:==|@)(?P<version>[A-Za-z0-9.!+-]+))?")
DOCKERFILE = b"""\
ARG BASE
FROM ${BASE}
ARG PACKAGES
RUN set -eu; \\
    [ -n "${PACKAGES}" ] || exit 0; \\
    mkdir -p /var/log/apt; \\
    cp /etc/nsswitch.conf /tmp/nsswitch.conf; \\
    echo 'hosts: files dns' > /etc/nsswitch.conf; \\
    apt-get update; \\
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${PACKAGES}; \\
    apt-get clean; \\
    cat /tmp/nsswitch.conf > /etc/nsswitch.conf; \\
    find / -xdev -type f -perm /6000 -exec chmod ug-s {} +; \\
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/* /tmp/*; \\
    : > /etc/machine-id; \\
    ln -sf /goex/job/ca.pem /etc/ssl/certs/ca-certificates.crt
COPY app/ /goex/app/
"""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """An image of a server: its name with its hash, how the server is started in it, and the lock of its packages."""

    image: str
    argv: tuple[str, ...]
    lock: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.lock).hexdigest()


def named(command: Sequence[str], debian: Sequence[str]) -> tuple[str, Sequence[str]]:
    """What starts the package that `command` names, and the words for it. Raises InvalidInput for a command that names
    no published package; nothing is looked up."""
    profiles.check_packages(debian)
    runner, *rest = command or ("",)
    words = [word for word in rest if word not in ("-y", "--yes")] if runner == "npx" else rest
    if runner not in ("npx", "uvx") or not words or words[0].startswith("-"):
        raise InvalidInput(
            "GoEx runs published packages alone.",
            next_step="Write: goex mcp add NAME -- npx PACKAGE[@VERSION] … (npm), or: uvx PACKAGE[==VERSION] … (PyPI)",
        )
    (node_modules.named if runner == "npx" else _pypi_name)(words[0])
    return runner, words


def build(name: str, command: Sequence[str], debian: Sequence[str], progress: Progress) -> Built:
    """Lock and fetch what `command` (npx PACKAGE …, uvx PACKAGE …) names, and build the image of the server `name`.

    Raises InvalidInput for a command that names no published package, Unavailable when something can't be fetched."""
    runner, words = named(command, debian)
    with tempfile.TemporaryDirectory(prefix="goex-mcp-") as scratch:
        app = Path(scratch, "app")
        app.mkdir()
        start, lock = (_npm if runner == "npx" else _pypi)(words[0], app, progress)
        files = {"Dockerfile": DOCKERFILE, "lock": lock, "apt": " ".join(sorted(debian)).encode()}
        image = images.build_on(IMAGE, f"mcp-{name}", files, app, tuple(sorted(debian)), progress)
    return Built(image=image, argv=(*start, *words[1:]), lock=lock)


def forget(image: str, servers: Servers, waiting: Path) -> image_removal.Removed:
    """Remove the image of a server, with what waits in it in the folder `waiting`, unless one of `servers` has it. One
    at an address has none of its own. Blocks; raises SandboxFailed."""
    if not _OWN_IMAGE.fullmatch(image) or image in (kept := servers.images()):
        return image_removal.Removed(0)
    return image_removal.forget(image, waiting, kept)


def _npm(package: str, app: Path, progress: Progress) -> tuple[tuple[str, ...], bytes]:
    name, _ = node_modules.named(package)
    lock = node_modules.lock([package], progress)
    own = node_modules.fetch(lock, app, progress) / name
    starts = json.loads((own / "package.json").read_text()).get("bin") or {}
    file = starts if isinstance(starts, str) else starts.get(name.rpartition("/")[2]) or next(iter(starts.values()), "")
    if not file or not (own / file).resolve().is_relative_to(own.resolve()):
        raise InvalidInput(f"{escape(package)} has no command.", next_step="Name the package of an MCP server.")
    return ("node", f"{APP}/{node_modules.FOLDER}/{name}/{os.path.normpath(file)}"), lock


def _pypi_name(package: str) -> re.Match[str]:
    found = _PYPI.fullmatch(package)
    if found is None:
        raise InvalidInput(f"{escape(package[:80])!r} isn't the name of a package of PyPI.")
    return found


def _pypi(package: str, app: Path, progress: Progress) -> tuple[tuple[str, ...], bytes]:
    named = _pypi_name(package)
    version = named["version"] if named["version"] != "latest" else ""
    lock = libraries.resolve([f"{named['name']}=={version}" if version else named["name"]], progress)
    libraries.fetch(lock, app / "site", progress)
    plain = re.sub(r"[-_.]+", "-", named["name"]).lower()
    for file in sorted((app / "site").glob("*.dist-info/entry_points.txt")):
        if re.sub(r"[-_.]+", "-", file.parent.name.split("-")[0]).lower() != plain:
            continue
        read = configparser.ConfigParser()
        read.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their letters' case
        read.read_string(file.read_text())
        found = dict(read["console_scripts"]) if read.has_section("console_scripts") else {}
        target = found.get(named["name"]) or next(iter(found.values()), "")
        module, _, function = target.partition("[")[0].strip().partition(":")
        if re.fullmatch(r"[\w.]+", module) and re.fullmatch(r"[\w.]+", function):
            path = f"{APP}/site"
            program = (
                f"import sys;sys.path.insert(0,{path!r});import {module} as m;"
                f"sys.argv[0]={named['name']!r};sys.exit(m.{function}())"
            )
            return ("python3", "-P", "-c", program), lock
    raise InvalidInput(f"{escape(package)} has no command.", next_step="Name the package of an MCP server.")
