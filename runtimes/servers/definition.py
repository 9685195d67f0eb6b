"""The MCP servers that were added: how each is started, and what it said of its tools when the person agreed.

Rules: a server is known by the hash of all that is said here, which the catalog has as its version and grants are bound
to; a file that was altered, or says another name, is no server. What a server says of itself is its own claim.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from policies.errors import Conflict, InvalidInput, Unavailable
from policies.jsonvalue import JsonObject, canonical, parse
from policies.regular_file import folder_below, open_regular, read_regular

PROVIDER = "mcp"
HOST = ".mcp.invalid"  # no name below it is ever looked up (RFC 2606)
NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
_FILE, _LOCK, _SEEN = "server.json", "lock", "seen.json"
_MOST = 16_000_000  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server. `command` is what the person typed; `argv` starts it in the image `image`, or nothing does where it
    is at a `url`. `variable` gets the account's placeholder; `folder` is the person's, seen as /work."""

    name: str
    command: tuple[str, ...]
    argv: tuple[str, ...]
    image: str
    lock: str  # SHA-256 of the packages' lock
    tools: tuple[JsonObject, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    variable: str = ""
    folder: str = ""
    url: str = ""

    @property
    def way(self) -> str:
        """How it is had, in words: the command that starts it, or where it is."""
        return self.url or " ".join(self.command)

    def having(self, tools: Sequence[JsonObject]) -> Server:
        """The same with these tools. Raises InvalidInput where two have one name: what is shown of one would be said of
        the other."""
        if len({str(tool.get("name")) for tool in tools}) != len(tools):
            raise InvalidInput(
                f"{self.name} lists two tools of one name.",
                next_step="Nothing of it is called until its maker mends that.",
            )
        return replace(self, tools=tuple(sorted(tools, key=lambda tool: str(tool.get("name")))))

    @property
    def version(self) -> str:
        """The hash over all of it."""
        return hashlib.sha256(b"goex.v1.mcp\0" + canonical(asdict(self))).hexdigest()[:32]

    @property
    def base_url(self) -> str:
        """The address that its methods have: one that leads nowhere, since a container is where they are."""
        return f"https://{self.name}{HOST}"

    @property
    def mark(self) -> str:
        """What an account is sealed with: that the person agreed to the server as it is here. An address, too, that
        leads nowhere."""
        return f"https://{self.version}.{self.name}{HOST}"

    @property
    def agreed(self) -> str:
        """The hash of its tools, as `drive.py` makes it."""
        return digest(self.tools)


def digest(tools: Sequence[JsonObject]) -> str:
    """The hash of a list of tools, in whatever order."""
    ordered = sorted(tools, key=lambda tool: str(tool.get("name")))
    return hashlib.sha256(json.dumps(ordered, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers in a folder."""

    place: Path

    def names(self) -> tuple[str, ...]:
        return tuple(
            sorted(file.parent.name for file in self.place.glob(f"*/{_FILE}") if not self._links(file.parent.name))
        )

    def images(self) -> frozenset[str]:
        """The images that they run in."""
        found = set()
        for name in self.names():
            with suppress(Conflict):  # one that was altered isn't run
                found.add(self.get(name).image)
        return frozenset(found)

    def get(self, name: str, version: str = "") -> Server:
        """The server of that name, as the catalog has it. Raises Conflict for one that was altered since."""
        again = f"Add it again: goex mcp add {name} --replace -- …"
        try:
            value: Any = parse(self._read(name, _FILE), limit=_MOST, what="The server's description")
            server = Server(**{**value, **{key: tuple(value[key]) for key in ("command", "argv", "tools")}})
        except (OSError, KeyError, TypeError, InvalidInput) as error:
            raise Conflict(f"What was agreed on about the MCP server {name} can't be read.", next_step=again) from error
        if server.name != name or (version and server.version != version):
            raise Conflict(f"The MCP server {name} isn't as it was added.", next_step=again)
        return server

    def put(self, server: Server, lock: bytes = b"") -> None:
        """Write a server down. Raises Unavailable."""
        self._write(server.name, _FILE, canonical(asdict(server)))
        if lock:
            self._write(server.name, _LOCK, lock)
        self.forget_seen(server.name)

    def files(self, name: str) -> dict[str, bytes]:
        """What is written down of a server, by file."""
        if self._links(name):
            return {}
        found = (file for file in (self.place / name).glob("*") if file.is_file() and not file.is_symlink())
        return {file.name: read_regular(file) for file in found}

    def put_back(self, name: str, files: Mapping[str, bytes]) -> None:
        """Make these (`files`) what is written down of a server. What can't be written or unlinked stays as it is."""
        for file, data in files.items():
            with suppress(Unavailable):
                self._write(name, file, data)
        for file in self.files(name).keys() - files.keys():
            with suppress(OSError):
                (self.place / name / file).unlink()
        with suppress(OSError):  # there is something in it
            (self.place / name).rmdir()

    def remove(self, name: str) -> None:
        if (self.place / name).is_symlink():
            (self.place / name).unlink()  # what it leads to isn't ours
        shutil.rmtree(self.place / name, ignore_errors=True)

    def note_seen(self, name: str, tools: Sequence[JsonObject]) -> None:
        """Keep what a server says of its tools now, for the person to review."""
        self._write(name, _SEEN, canonical(list(tools)))

    def seen(self, name: str) -> tuple[JsonObject, ...] | None:
        """What it said when it last differed; None: it never did."""
        try:
            value: Any = parse(self._read(name, _SEEN), limit=_MOST, what="The list of tools")
        except (OSError, InvalidInput):
            return None
        return tuple(one for one in value if isinstance(one, dict)) if isinstance(value, list) else None

    def forget_seen(self, name: str) -> None:
        if not self._links(name):
            (self.place / name / _SEEN).unlink(missing_ok=True)

    def _links(self, name: str) -> bool:
        """Whether its folder is elsewhere."""
        try:
            folder_below(self.place, name)
        except OSError:
            return True
        return False

    def _read(self, name: str, file: str) -> bytes:
        if not NAME.fullmatch(name):
            raise InvalidInput("This can't be a server's name.")
        return read_regular(folder_below(self.place, name) / file, _MOST + 1)

    def _write(self, name: str, file: str, data: bytes) -> None:
        try:
            folder = folder_below(self.place, name)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = folder / f"{file}.{secrets.token_hex(8)}"  # where nobody can have put a link or a pipe
            try:
                with os.fdopen(open_regular(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as made:
                    made.write(data)
                fresh.replace(folder / file)
            finally:
                fresh.unlink(missing_ok=True)  # where it didn't get there
        except OSError as error:
            raise Unavailable(f"{self.place} can't be written: {error.strerror}.") from error
