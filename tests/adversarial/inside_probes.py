"""An attacker's program, run inside a container in place of ours: `inside_probes.py NAME...` prints one JSON object.

A probe returns what it got when its attack went through, and raises when it was refused. Standard library only; where
things are comes in the environment.
"""

# Paths and sockets themselves are what is probed here.
# ruff: noqa: PTH123, PTH208
from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import sys
from urllib.parse import urlsplit

GATEWAY = "/goex/gateway/gw.sock"
HI = {"text": "hi"}


def tunnel(origin: str, path: str = GATEWAY) -> socket.socket:
    parts = urlsplit(origin)
    host, port = parts.hostname, parts.port or 443
    raw = socket.socket(socket.AF_UNIX)
    raw.settimeout(60)
    raw.connect(path)
    raw.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        part = raw.recv(1)
        if not part:
            break
        head += part
    if not head.startswith(b"HTTP/1.1 200"):
        raise ConnectionRefusedError(head.decode().splitlines()[0] if head else "closed")
    context = ssl.create_default_context(cafile="/goex/job/ca.pem")
    return context.wrap_socket(raw, server_hostname=host)


def ask(
    method: str, origin: str, path: str, body: object = HI, headers: dict[str, str] | None = None, via: str = GATEWAY
) -> str:
    connection = http.client.HTTPConnection(urlsplit(origin).netloc, timeout=60)
    connection.sock = tunnel(origin, via)
    sent = {"Accept": "application/json", "Content-Type": "application/json", **(headers or {})}
    connection.request(method, path, json.dumps(body), sent)
    answer = connection.getresponse()
    said = answer.read().decode()
    connection.close()
    if answer.status != 200:
        raise ConnectionRefusedError(f"{answer.status} {said}")
    return said


def planned() -> str:
    return ask("POST", os.environ["GOOD"], "/api/messages")


def another_host() -> str:
    return ask("POST", os.environ["OTHER"], "/api/messages")


def raw_address() -> str:
    return ask("POST", os.environ["RAW"], "/api/messages")


def metadata_address() -> str:
    return ask("POST", "https://169.254.169.254:" + os.environ["GOOD"].rsplit(":", 1)[1], "/api/messages")


def another_path() -> str:
    return ask("POST", os.environ["GOOD"], "/api/admin")


def another_method() -> str:
    return ask("DELETE", os.environ["GOOD"], "/api/messages")


def another_body() -> str:
    return ask("POST", os.environ["GOOD"], "/api/messages", {"text": "bye"})


def second_use() -> str:
    planned()
    return planned()


def own_token() -> str:
    return ask("POST", os.environ["GOOD"], "/api/messages", headers={"Authorization": "Bearer attackers-own"})


# Without the gateway.


def direct_address() -> str:
    host, _, port = os.environ["DIRECT"].partition(":")
    with socket.create_connection((host, int(port)), 3) as wire:
        return wire.recv(100).decode()


def direct_metadata() -> str:
    """Whether there is a way there at all: connecting by UDP sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.connect(("169.254.169.254", 80))
        return str(wire.getsockname())


def dns() -> str:
    """A question to a resolver, by UDP and past the library, which may have no resolver configured."""
    host, _, port = os.environ["RESOLVER"].partition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.settimeout(30)
        wire.connect((host, int(port)))  # where nobody has that port, that is said at once
        wire.send(b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x04evil\x07example\0\0\x01\0\x01")
        return wire.recv(512).decode()


def abstract_socket() -> str:
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(30)
        wire.connect("\0" + os.environ["ABSTRACT"])
        return wire.recv(100).decode()


def unix(name: str) -> str:
    """Whoever listens at a path of the host's, as it is there and wherever the control mounts it."""
    wire = socket.socket(socket.AF_UNIX)
    wire.settimeout(30)
    wire.connect(os.environ[name])
    return "connected"


def agent_socket() -> str:
    return unix("AGENT_SOCKET")


def user_socket() -> str:
    return unix("USER_SOCKET")


def engine_socket() -> str:
    return unix("ENGINE_SOCKET")


def another_actions_socket() -> str:
    return ask("POST", os.environ["GOOD"], "/api/messages", via=os.environ["ANOTHER"])


def search_for_sockets() -> str:
    """Every socket in any folder that can be entered, but our own."""
    found = []
    for top, folders, files in os.walk("/"):
        folders[:] = [name for name in folders if (top, name) not in (("/", "proc"), ("/", "sys"))]
        for name in files:
            path = f"{top.rstrip('/')}/{name}"
            try:
                mode = os.lstat(path).st_mode
            except OSError:
                continue
            if mode & 0o170000 == 0o140000 and path != GATEWAY:
                found.append(path)
    if not found:
        raise FileNotFoundError("no socket but our own")
    return " ".join(found)


def anothers_tmp() -> str:
    with open("/tmp/left-by-another") as file:
        return file.read()


def leave_in_tmp() -> str:
    with open("/tmp/left-by-another", "w") as file:
        file.write("left by another")
    return "left"


def gateway_folder() -> str:
    """Put something into the folder of the gateway's socket, where the host would find it."""
    with open("/goex/gateway/planted", "w") as file:
        file.write("x")
    return "planted"


def gateway_parent() -> str:
    return str(sorted(set(os.listdir("/goex/gateway/..")) - {"bin", "gateway", "job", "last", "supervise"}) or [][0])


def attempt(name: str) -> dict[str, str]:
    try:
        return {"got": globals()[name]()}
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}"[:400]}


if __name__ == "__main__":
    print(json.dumps({name: attempt(name) for name in sys.argv[1:]}))
