"""An MCP server of a test's own as a service of a daemon: its image is made of one file, and nothing is fetched."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goex.rpc import goex_pb2 as pb
from mapper.importing import mcp_install
from mapper.importing.document_files import Source
from policies.services import Placement
from runtimes.sandbox import images
from runtimes.sandbox.contract import Profile
from runtimes.servers import packages
from runtimes.servers.definition import Server, Servers
from runtimes.servers.listing import tools_of
from tests.support.daemon import APPROVAL_PASSPHRASE, Daemon
from tests.support.journey import Journey

TOKEN = "the-real-credential-of-the-server"


def image_of(file: Path) -> str:
    """The image of a server that is one Python file."""
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copy(file, Path(scratch, "server.py"))
        files = {"Dockerfile": packages.DOCKERFILE, "lock": file.read_bytes()}
        return images.build_on(packages.IMAGE, "mcp-of-a-test", files, Path(scratch), (), lambda line: None)


@dataclass(frozen=True)
class Added:
    """A server of a daemon."""

    daemon: Daemon
    server: Server

    def call(self, *texts: str, width: str = "once", **more: Any) -> tuple[str, pb.Finished, Any]:
        """Call its tool with each text, the person saying yes: the action, its end, and its outcome."""
        journey = Journey(self.daemon, request(self.server.name, *texts), person=True, **more)
        finished = journey.approve(width)
        return journey.action_id, finished, json.loads(finished.action.outcome_json or "{}")


def request(name: str, *texts: str) -> pb.ExecuteRequest:
    calls = [pb.Call(service=name, method="echo", arguments_json=json.dumps({"text": text})) for text in texts]
    return pb.ExecuteRequest(calls=pb.Calls(calls=calls))


def add(
    daemon: Daemon,
    name: str,
    image: str,
    *,
    env: Mapping[str, str] | None = None,
    seen: Mapping[str, str] | None = None,
    folder: str = "",
    origin: str = "",
    ca_pem: str = "",
    seal: bool = True,
) -> Added:
    """Add a server as `goex mcp add` does. `seen`: its variables when it lists the tools that are agreed on."""
    own = dict(env or {})
    server = Server(
        name=name,
        command=("npx", name),
        argv=("python3", "-I", "/goex/app/server.py"),
        image=image,
        lock="",
        tools=(),
        env=own if seen is None else dict(seen),
        variable="TOKEN" if origin else "",
        folder=folder,
    )
    tools = tools_of(server, Profile(image=image))
    server = Server(**{**{key: getattr(server, key) for key in server.__slots__}, "env": own}).having(tools)
    Servers(daemon.state_dir / "servers").put(server)
    install(daemon, server)
    if seal:
        sealed(daemon, server, origin, ca_pem)
    return Added(daemon, server)


def install(daemon: Daemon, server: Server) -> None:
    """Put its tools into the catalog."""
    text = json.dumps({"tools": list(server.tools)})
    source = Source(server.name, text, hashlib.sha256(text.encode()).hexdigest())
    place = daemon.state_dir / "catalog.db"
    mcp_install.install(place, source, server.name, server.version, "", server.base_url, Placement())


def sealed(daemon: Daemon, server: Server, origin: str = "", ca_pem: str = "") -> None:
    """Agree to it as it is."""
    request = pb.VaultPutRequest(
        service=server.name,
        account="default",
        base_url=origin or server.mark,
        origins=[server.mark],
        secret=TOKEN.encode(),
        replace=True,
        private=bool(origin),
        ca_pem=ca_pem,
        passphrase=APPROVAL_PASSPHRASE,
    )
    daemon.person("VaultPut", request)
