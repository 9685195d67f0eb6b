"""The libraries that people use, through the gateway, with placeholders: they work, and nothing else than was allowed
leaves. `sdk_scene` runs them all, once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policies.accounts import Origin
from runtimes.gateway.head import parse_head
from runtimes.gateway.plan import MethodRule
from runtimes.gateway.request_headers import headers_of
from tests.runtimes.code.sdk_programs import PROGRAMS

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("unshare") is None,
        reason="names of hosts and port 443 are had in namespaces of its own, which takes root",
    ),
]

TS = "1700000000.000100"
RULE = MethodRule(
    id="rule-0", account=("a", "work"), origin=Origin.parse("https://a.example"), base_path=(), method="GET", path=()
)  # fmt: skip


@pytest.fixture(scope="module")
def ran(code_image: str) -> Iterator[dict[str, Any]]:
    """What each program did, by name."""
    with tempfile.TemporaryDirectory(prefix="sdk", dir="/tmp") as folder:  # sockets want short paths
        scene = ["unshare", "--mount", "--net", sys.executable, "-m", "tests.runtimes.code.sdk_scene", folder]
        done = subprocess.run(scene, cwd=Path(__file__).parents[3], capture_output=True, timeout=550)
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        yield json.loads(done.stdout)


def posts(program: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["method"], one["host"], one["target"]) for one in program["seen"]]


def test_slack_sdk(ran: dict[str, Any]) -> None:
    program = ran["slack_sdk"]
    assert (program["ok"], program["stdout"]) == (True, f"True {TS}\n"), program
    assert "chat.postMessage" in program["planned"]  # found by reading
    assert posts(program) == [("POST", "slack.com", "/api/chat.postMessage")]
    assert json.loads(program["seen"][0]["body"]) == {"channel": "C024BE91L", "text": "The build is green & done"}


def test_what_was_not_allowed_does_not_leave(ran: dict[str, Any]) -> None:
    program = ran["slack_beyond"]
    assert program["stdout"] == "True\nrefused 403\n", program
    assert posts(program) == [("POST", "slack.com", "/api/chat.postMessage")]
    assert "slack.conversations.archive" in program["summary"]  # the person reads what it would have been


def test_google_api_python_client(ran: dict[str, Any]) -> None:
    program = ran["google"]
    assert (program["ok"], program["stdout"]) == (True, "m-1\nf-1 Plan\n8388608 True\n"), program
    assert {"users.messages.send", "files.list"} <= set(program["planned"])
    assert [target.partition("?")[0] for _, _, target in posts(program)] == [
        "/gmail/v1/users/me/messages/send",
        "/drive/v3/files",
        "/drive/v3/files/f-1",
    ]


def test_pygithub(ran: dict[str, Any]) -> None:
    program = ran["github"]
    assert (program["ok"], program["stdout"]) == (True, "octo/hello 7\n7 8\n"), program
    assert [(method, target) for method, _, target in posts(program)] == [
        ("GET", "/repos/octo/hello"),
        ("POST", "/repos/octo/hello/issues"),
        ("GET", "/repos/octo/hello/issues?state=all"),
        ("GET", "/repos/octo/hello/issues?page=2&state=all"),
    ]


def test_openai_with_server_sent_events(ran: dict[str, Any]) -> None:
    assert (ran["openai"]["ok"], ran["openai"]["stdout"]) == (True, "forty-two\nforty|-|two|"), ran["openai"]


def test_anthropic_with_the_version_that_it_says(ran: dict[str, Any]) -> None:
    program = ran["anthropic"]
    assert program["ok"] and program["stdout"].startswith("20"), program
    assert "messages.create" in program["planned"]  # no method was named for it
    assert posts(program) == [("POST", "api.anthropic.com", "/v1/messages")]


def test_curl_and_wget(ran: dict[str, Any]) -> None:
    *first, refusal = ran["curl"]["stdout"].split("\n", 4)
    assert first == ["requests", TS, "403", "true"], ran["curl"]
    assert json.loads(refusal)["type"] == "goex-refused"
    assert posts(ran["curl"]) == [("POST", "slack.com", "/api/chat.postMessage")] * 2


def test_nodes_fetch_and_https(ran: dict[str, Any]) -> None:
    said = ran["node"]["stdout"].splitlines()
    assert said[0] == f"200 {TS}", ran["node"]
    assert said[1].startswith("403 ")
    assert said[-2:] == ["true", "200 true"]
    assert posts(ran["node"]) == [("POST", "slack.com", "/api/chat.postMessage")] * 2


def test_what_takes_no_proxy_reaches_the_service_and_nothing_else(ran: dict[str, Any]) -> None:
    program = ran["direct"]
    assert program["stdout"].splitlines() == [
        "200 True",
        "True",
        "another host refused",
        "another name refused",
        "another host in the request HTTP/1.1 403",
        "an address refused",
        "what is allowed HTTP/1.1 200",  # the control: the same way with what may be sent
    ], program
    assert posts(program) == [("POST", "slack.com", "/api/chat.postMessage")] * 3


def test_a_node_program_is_read_and_held_to_what_was_found(ran: dict[str, Any]) -> None:
    program = ran["module"]
    assert "chat.postMessage" in program["planned"]  # no method was named for it
    assert program["stdout"].splitlines() == [TS, "403", "refused"], program
    assert posts(program) == [("POST", "slack.com", "/api/chat.postMessage")]


def test_httpx_keeps_its_connection(ran: dict[str, Any]) -> None:
    assert (ran["httpx"]["ok"], ran["httpx"]["stdout"]) == (True, "True\n" * 5), ran["httpx"]


def test_twenty_connections_at_once(ran: dict[str, Any]) -> None:
    program = ran["many"]
    assert (program["ok"], program["stdout"]) == (True, "60\n"), program
    assert len(program["seen"]) == 60
    assert len({one["body"] for one in program["seen"]}) == 60


def test_a_host_that_is_not_allowed(ran: dict[str, Any]) -> None:
    program = ran["elsewhere"]
    assert program["stdout"].splitlines() == ["ProxyError", "ProxyError", "URLError"], program
    assert program["seen"] == []
    assert "3 requests were refused" in program["summary"]


@pytest.mark.parametrize("name", [program.name for program in PROGRAMS])
def test_the_server_gets_the_secret_and_the_program_never_does(ran: dict[str, Any], name: str) -> None:
    program = ran[name]
    for one in program["seen"]:
        assert one["authorization"].startswith("Bearer real-")
        assert "goex-" not in one["target"] + one["body"]
    assert "real-" not in program["stdout"] + program["stderr"]


def test_the_versions_that_the_image_s_libraries_say_are_known(code_image: str) -> None:
    """Else their every request would be refused, until the program has the version written out."""
    program = (
        "import json, pathlib, anthropic._client, github.Consts, googleapiclient, notion_client.client\n"
        "import stripe._api_version\n"
        "google = pathlib.Path(googleapiclient.__file__).parent / 'discovery_cache/documents'\n"
        "compute = json.loads((google / 'compute.v1.json').read_bytes())['resources']['instances']['methods']\n"
        "print(json.dumps({\n"
        " 'anthropic-version': anthropic._client.ANTHROPIC_API_VERSION,\n"
        " 'notion-version': notion_client.client.ClientOptions().notion_version,\n"
        " 'x-goog-api-version': [one['apiVersion'] for one in compute.values()],\n"
        " 'stripe-version': stripe._api_version._ApiVersion.CURRENT,\n"
        " 'x-github-api-version': [v for n, v in vars(github.Consts).items() if n.startswith('API_VERSION')]}))"
    )
    command = ["docker", "run", "--rm", "--network", "none", "--entrypoint", "python3", code_image, "-c", program]
    done = subprocess.run(command, capture_output=True, timeout=300, check=True)
    for name, found in json.loads(done.stdout).items():
        for version in found if isinstance(found, list) else [found]:
            sent, dropped = headers_of(
                parse_head(f"GET / HTTP/1.1\r\nHost: a\r\n{name}: {version}\r\n\r\n".encode()), RULE, body=False,
                websocket=False,
            )  # fmt: skip
            assert [value for _, value in sent] == [version]
            assert not dropped
