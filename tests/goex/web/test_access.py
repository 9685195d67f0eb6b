"""Who reaches the page's calls: links, sessions, hosts and origins, each with what does get through."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from goex.cli.main import app
from goex.paths import Paths
from goex.rpc import goex_pb2 as pb
from goex.web.access import LINK_SECONDS, MOST_SESSIONS, SESSION_SECONDS, Access, KeyFile, link_code
from goex.web.app import HEADERS, LARGEST_BODY
from goex.web.daemon_calls import STREAMED, UNARY
from policies.errors import Unavailable
from tests.support.daemon import Daemon
from tests.support.page import WebPage, ask_for_update, page_of

pytestmark = pytest.mark.promise(86)


def send(
    web: WebPage, path: str, body: object = None, *, method: str = "POST", token: str = "", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """One request. Headers are those of the page's own script but for what is given (`""` leaves one out)."""
    connection = HTTPConnection("127.0.0.1", web.port, timeout=300)
    given = {"Host": web.origin.partition("://")[2]}
    if method == "POST":
        given |= {"Origin": web.origin, "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        given["Authorization"] = f"Bearer {token}"
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    data = body if isinstance(body, bytes) else json.dumps(body if body is not None else {}).encode()
    if method == "POST":
        given["Content-Length"] = str(len(data))
    for name, value in given.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders(data if method == "POST" else None)
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read()


def session_of(web: WebPage) -> str:
    status, _, body = send(web, "/enter", {"code": web.link().partition("#")[2]})
    assert status == 200
    return str(json.loads(body)["token"])


def test_a_link_opens_once_and_a_session_reaches_the_daemon(web: WebPage, daemon: Daemon) -> None:
    code = web.link().partition("#")[2]
    status, _, body = send(web, "/enter", {"code": code})
    assert status == 200
    token = json.loads(body)["token"]
    assert send(web, "/enter", {"code": code})[0] == 401
    assert json.loads(send(web, "/call/Person/Status", token=token)[2])["pid"] == daemon.pid
    assert send(web, "/leave", token=token)[0] == 200
    assert send(web, "/call/Person/Status", token=token)[0] == 401


def test_a_link_that_is_used_by_many_at_once_opens_once(web: WebPage) -> None:
    def opened(codes: list[str]) -> int:
        with ThreadPoolExecutor(len(codes)) as threads:
            return list(threads.map(lambda code: send(web, "/enter", {"code": code})[0], codes)).count(200)

    assert opened([web.link().partition("#")[2]] * 12) == 1
    assert opened([web.link().partition("#")[2] for _ in range(3)]) == 3  # the control: a link for each


@pytest.mark.parametrize("path", [f"/call/{name}" for name in (*UNARY, *STREAMED)])
def test_no_call_is_made_without_a_session(web: WebPage, path: str) -> None:
    for token in ("", "x", "a" * 43):
        status, _, body = send(web, path, token=token)
        assert (status, json.loads(body)["problem"]["code"]) == (401, "session")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1:{port}"},
        {"Host": "localhost:{port}"},
        {"Host": "goex.localhost:{port}"},
        {"Host": "0123456789abcdef.goex.localhost:{port}"},
        {"Host": "{host}.evil.example"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://localhost:{port}"},
        {"Origin": "http://0123456789abcdef.goex.localhost:{port}"},
        {"Origin": "https://{host}"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Content_Type": "text/plain"},
        {"Content_Type": ""},
    ],
    ids=str,
)
def test_a_request_of_another_host_or_page_is_refused_with_a_good_session(
    web: WebPage, headers: dict[str, str]
) -> None:
    token = session_of(web)
    assert send(web, "/call/Person/Status", token=token)[0] == 200  # the control
    host = web.origin.partition("://")[2]
    wrong = {name: value.format(host=host, port=web.port) for name, value in headers.items()}
    assert send(web, "/call/Person/Status", token=token, **wrong)[0] in (400, 403, 421)


def test_a_read_under_another_host_gets_nothing_of_the_page(web: WebPage) -> None:
    assert b"GoEx" in send(web, "/", method="GET")[2]
    for host in ("evil.example", f"127.0.0.1:{web.port}", f"localhost:{web.port}"):
        status, _, body = send(web, "/", method="GET", Host=host)
        assert status == 421
        assert b"<html" not in body
        assert b"goex web" in body  # for the person who typed it


def test_what_others_set_for_goex_localhost_keeps_nobody_out(web: WebPage) -> None:
    """As much as a browser keeps of it: 180 cookies of 4 KiB."""
    cookies = "; ".join(f"c{number:03}={'x' * 4091}" for number in range(180))
    assert b"GoEx" in send(web, "/", method="GET", Cookie=cookies)[2]


@pytest.mark.parametrize("path", ["/", "/main.js", "/page.css", "/icon.svg", "/missing", "/enter", "/../app.py"])
def test_every_answer_forbids_frames_foreign_code_and_keeping(web: WebPage, path: str) -> None:
    _, headers, _ = send(web, path, method="GET")
    lower = {name.lower(): value for name, value in headers.items()}
    for name, value in HEADERS.items():
        assert lower[name.lower()] == value, name
    assert "set-cookie" not in lower
    assert "access-control-allow-origin" not in lower
    assert "server" not in lower


def test_only_the_calls_of_the_table_are_made(web: WebPage) -> None:
    token = session_of(web)
    others = ("Person/Shutdown", "Person/AddAgent", "Vault/Backup", "Rules/ApplyRules", "Person/VaultPut",
              "Databases/AddDatabase", "Actions/Execute", "..%2F/Status", "Person/Status/")  # fmt: skip
    for method in others:
        assert send(web, f"/call/{method}", token=token)[0] == 404, method


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff", b'{"no_such_field": 1}', b'{"limit": "x"}', b"[" * 100_000], ids=str
)
def test_a_body_that_isnt_the_calls_is_refused_and_the_page_goes_on(web: WebPage, body: bytes) -> None:
    token = session_of(web)
    status, _, _ = send(web, "/call/Audit/Actions", body, token=token)
    assert status == (200 if body == b"" else 400)
    assert send(web, "/call/Person/Status", token=token)[0] == 200


def test_a_body_has_a_bound(web: WebPage) -> None:
    token = session_of(web)
    assert send(web, "/call/Person/Status", b" " * (LARGEST_BODY + 1), token=token)[0] == 413
    assert send(web, "/enter", b" " * (LARGEST_BODY + 1))[0] == 413


def test_a_yes_without_the_passphrase_or_for_another_digest_is_none(web: WebPage, daemon: Daemon, token: str) -> None:
    action = ask_for_update(daemon, token, "x")
    session = session_of(web)
    approval = json.loads(send(web, "/call/Person/Approvals", token=session)[2])["approvals"][0]
    yes = {"approval_id": approval["id"], "approve": True, "width": "once"}
    for more in ({"digest": approval["digest"]}, {"digest": "0" * 64}, {}):
        status, _, body = send(web, "/call/Person/Decide", {**yes, **more}, token=session)
        assert status in (400, 403), body
    assert daemon.person_action(action) in ("asking", "waiting", "asked")
    status, _, _ = send(web, "/call/Person/Decide", {"approval_id": approval["id"], "approve": False}, token=session)
    assert status == 200  # the control: a denial needs no presence


def test_the_key_is_readable_by_this_person_alone_and_ends_with_the_page() -> None:
    with Daemon(init=False) as daemon, page_of(daemon) as page:
        key = daemon.run_dir / "web.key"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        link = page.link()
        plain = daemon.goex("web", "--no-browser", "--localhost")
        assert (plain.returncode != 0, plain.stdout) == (True, "")
        assert "another address" in plain.stderr
        assert page.end(signal.SIGKILL) == -signal.SIGKILL
        # Somebody else listens where it was: no link leads there.
        with socket.create_server(("127.0.0.1", page.port)):
            again = daemon.goex("web", "--no-browser", "--port", str(page.port))
            assert again.returncode != 0
            assert "can't be used" in again.stderr
            assert link.partition("#")[2] not in again.stdout
        with page_of(daemon, None, "--localhost") as old:  # where earlier passkeys are for
            assert old.origin == f"http://localhost:{old.port}"
            assert old.port != 7464, "where the page always was, another user may have left a script"
            assert session_of(old)
            plain = daemon.goex("web", "--no-browser")  # it would lead to the wrong one
            assert (plain.returncode != 0, "another address" in plain.stderr) == (True, True)


def test_nobody_else_answers_on_another_address_of_localhost(web: WebPage) -> None:
    if not socket.has_ipv6 or not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    with socket.socket(socket.AF_INET6) as other, pytest.raises(OSError, match="in use"):
        other.bind(("::1", web.port))


HERE = "http://x.goex.localhost:7464"
PUBLIC = "https://goex.example.org"


class TestTunnels:
    """A tunnel leads to `[web] port`, where whoever likes may listen while the page is at another one."""

    @pytest.fixture
    def served(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """At which public address the page was served, each time."""
        for name in ("CONFIG_HOME", "STATE_HOME", "RUNTIME_DIR"):
            monkeypatch.setenv(f"XDG_{name}", str(tmp_path))
        (tmp_path / "goex").mkdir()
        (tmp_path / "goex" / "config.toml").write_text(f'[web]\nport = 7464\npublic_url = "{PUBLIC}"\n')
        (tmp_path / "goex" / "config.toml").chmod(0o600)
        asked: list[str] = []

        async def serve(paths: Paths, port: int, public: str, *_: object, **__: object) -> None:
            asked.append(public)

        monkeypatch.setattr("goex.web.server.serve", serve)
        monkeypatch.setattr("goex.cli.connect.connect", lambda _: SimpleNamespace(close=lambda: None))
        return asked

    def test_the_page_is_public_at_that_port_alone(self, served: list[str]) -> None:
        for more in ([], ["--port", "7464"], ["--port", "7465"], ["--localhost"]):
            said = CliRunner().invoke(app, ["web", "--json", *more])
            assert (said.exit_code, f"{PUBLIC} isn't served here" in said.output) == (0, served[-1] == "")
        assert served == [PUBLIC, PUBLIC, "", ""]

    @pytest.mark.parametrize("more", [("--port", "7465"), ("--localhost",)])
    def test_a_link_for_a_phone_is_for_that_port(self, served: list[str], more: tuple[str, ...]) -> None:
        assert CliRunner().invoke(app, ["web", "--json", "--phone"]).exit_code == 0  # the control
        said = CliRunner().invoke(app, ["web", "--json", "--phone", *more])
        assert (said.exit_code, served) == (2, [PUBLIC]) and "[web] port" in said.output

    @pytest.mark.parametrize("origin", ["http://x.goex.localhost:7465", "http://localhost:7465"])
    def test_nor_is_there_one_where_the_page_runs_at_another(
        self, served: list[str], tmp_path: Path, origin: str
    ) -> None:
        file = KeyFile(tmp_path / "goex" / "web.key")
        file.take(origin)
        said = CliRunner().invoke(app, ["web", "--json", "--phone"])
        assert (said.exit_code, served) == (6, []) and PUBLIC not in said.output
        os.close(file._handle)  # as when that page ends
        file.take(HERE)
        said = CliRunner().invoke(app, ["web", "--json", "--phone"])
        assert (said.exit_code, served) == (0, []) and f"{PUBLIC}/#" in said.output  # the control
        os.close(file._handle)


class TestLinks:
    """The link's code and the session's token, by the clock."""

    def test_a_link_ends_and_so_does_a_session(self) -> None:
        now = 1000.0
        access = Access(b"k" * 32, lambda: now)
        late, soon = link_code(b"k" * 32, now, HERE), link_code(b"k" * 32, now, HERE)
        assert access.enter(soon, HERE)
        token = access.begin(HERE)
        assert access.of(token, HERE)
        now += LINK_SECONDS
        assert not access.enter(late, HERE)
        now += SESSION_SECONDS
        assert not access.of(token, HERE)

    @pytest.mark.parametrize("code", ["", ".", "a.b.c", "x" * 10_000, "é.1.2", "a.99999999999.b", "a.nan.00"])
    def test_a_forged_link_opens_nothing(self, code: str) -> None:
        assert not Access(b"k" * 32).enter(code, HERE)

    def test_a_link_of_another_key_opens_nothing(self) -> None:
        access = Access(b"k" * 32, lambda: 1000.0)
        assert not access.enter(link_code(b"x" * 32, 1000.0, HERE), HERE)
        said, _, signature = link_code(b"k" * 32, 1000.0, HERE).rpartition(".")
        assert not access.enter(f"{said}0.{signature}", HERE)
        assert access.enter(f"{said}.{signature}", HERE)
        assert not access.enter(f"{said}.{signature}", HERE)  # a second time

    def test_the_oldest_session_ends_when_there_are_too_many(self) -> None:
        access = Access(b"k" * 32, lambda: 1000.0)
        tokens = [access.begin(HERE) for _ in range(MOST_SESSIONS + 1)]
        assert [access.of(token, HERE) is not None for token in tokens] == [False] + [True] * MOST_SESSIONS

    def test_one_page_holds_the_key_file(self, tmp_path: Path) -> None:
        file = KeyFile(tmp_path / "web.key")
        assert file.of_running() is None
        key = file.take(HERE)
        assert KeyFile(tmp_path / "web.key").of_running() == (key, HERE)
        with pytest.raises(Unavailable):
            KeyFile(tmp_path / "web.key").take(HERE)

    def test_a_link_in_its_place_isnt_followed(self, tmp_path: Path) -> None:
        (tmp_path / "web.key").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(Unavailable, match="Not a regular file"):
            KeyFile(tmp_path / "web.key").take(HERE)
        assert not (tmp_path / "elsewhere").exists()


def test_a_page_without_a_daemon_says_so(web: WebPage, daemon: Daemon) -> None:
    token = session_of(web)
    daemon.stop()
    try:
        status, _, body = send(web, "/call/Person/Status", token=token)
        assert status == 400
        assert "went away" in json.loads(body)["problem"]["message"]
    finally:
        daemon.start()
        daemon.unlock()
    until = time.monotonic() + 300
    while (answer := send(web, "/call/Person/Status", token=token))[0] != 200:  # gRPC connects anew after a second
        assert time.monotonic() < until, answer
        time.sleep(0.1)
    assert json.loads(answer[2])["pid"] == daemon.pid
    assert daemon.person("Status", pb.StatusRequest()).vault == "unsealed"
