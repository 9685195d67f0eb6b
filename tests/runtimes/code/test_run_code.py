"""A program in its container: it ends as it would by itself, finds its variables, and reaches nothing but the proxy."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from policies.actions import Ended
from policies.errors import InvalidInput
from runtimes.code import environment
from runtimes.sandbox.contract import Profile, Result
from runtimes.sandbox.docker import DockerSandbox
from runtimes.sandbox.pool_bounds import NO_POOL, PoolBounds
from tests.runtimes.gateway.authority import TestCA

PROFILE = Profile(image="code")


async def ran(
    tmp_path: Path,
    program: str,
    language: environment.Language = "python",
    image: str = "code",
    files: Mapping[str, str] | None = None,
    waits: bool = False,
    **env: str,
) -> Result:
    """Run a program whose gateway is a socket that answers every request with 200 and what was asked. `waits`: in a
    container that waited for it."""
    gateway = tmp_path / "gateway"
    gateway.mkdir(exist_ok=True)
    (gateway / "gw.sock").unlink(missing_ok=True)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        said = head.partition(b"\r\n")[0]
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (len(said), said))
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(answer, str(gateway / "gw.sock"))
    (gateway / "gw.sock").chmod(0o666)
    bounds = PoolBounds(least=1, most=1) if waits else NO_POOL
    sandbox = DockerSandbox(f"test-run-code-{os.getpid()}", pool_dir=tmp_path / "waiting", bounds=bounds)
    job = environment.job(
        action_id="a1",
        language=language,
        program=program,
        ca_pem=TestCA().pem,
        socket_dir=str(gateway),
        env=env,
        files=files,
    )
    try:
        if waits:
            sandbox.prepare(Profile(image=image))
            for _ in range(6_000):
                await asyncio.sleep(0.05)
                if sandbox.pooled(Profile(image=image)):
                    break
            await asyncio.sleep(1)  # it has loaded what it can
        return await sandbox.run(job, Profile(image=image))
    finally:
        await sandbox.close()
        server.close()


ENDS = """
import atexit, dataclasses, pickle, sys, threading, time

class Kept:
    def __reduce__(self):
        return Kept, ()

@dataclasses.dataclass
class Point:
    x: "int"

assert __name__ == "__main__" and sys.modules["__main__"].Kept is Kept
assert __file__ == sys.argv[0] == "/goex/job/program.py"
assert type(pickle.loads(pickle.dumps(Kept()))) is Kept and Point(1) == Point(1)
left = open("/dev/stdout", "w")
left.write("not flushed\\n")
atexit.register(print, "at exit")
threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
print("first", exit.__class__.__name__)
if sys.argv[1:] == []:
    raise SystemExit(7)
"""


@pytest.mark.docker
@pytest.mark.parametrize("waits", [False, True])
async def test_a_python_program_ends_as_it_would_by_itself(tmp_path: Path, code_image: str, waits: bool) -> None:
    result = await ran(tmp_path, ENDS, waits=waits)
    assert (result.exit_code, result.stderr) == (7, b"")
    assert result.stdout.decode().splitlines() == ["first Quitter", "thread", "at exit", "not flushed"]


OPEN = """
import os
print(sorted(os.readlink(f"/proc/self/fd/{each}").partition(":")[0] for each in (0, 1, 2)))
left = [each for each in range(3, 1024) if os.path.exists(f"/proc/self/fd/{each}")]
print(sorted(os.readlink(f"/proc/self/fd/{each}").partition(":")[0] for each in left))
"""


@pytest.mark.docker
@pytest.mark.parametrize("waits", [False, True])
async def test_a_program_is_left_no_descriptor(tmp_path: Path, code_image: str, waits: bool) -> None:
    """But its own file, from which it is read, and where it says that it ends; not the way to the proxy's process."""
    result = await ran(tmp_path, OPEN, waits=waits)
    left = ["/goex/job/program.py", "pipe"] if waits else ["/goex/job/program.py"]
    assert result.stdout.decode().splitlines() == ["['/dev/null', 'pipe', 'pipe']", str(left)], result


AT_ONCE = """
import atexit, sys, threading, time

left = open(sys.argv[0] + ".out", "w")
left.write("written")

class Loop:
    def __init__(self):
        self.itself, self.file = self, open(sys.argv[0] + ".loop", "w")
        self.file.write("written too")

class Last:
    def __del__(self, write=print):
        write("dropped")

loop, last = Loop(), Last()
atexit.register(print, "at exit")
threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
print("no newline", end="")
assert sys.modules["__main__"].loop is loop
"""


@pytest.mark.parametrize("more", ["", "raise SystemExit(3)", "sys.exit('why')", "1 / 0"])
def test_nothing_is_lost_where_the_process_ends_at_once(tmp_path: Path, more: str) -> None:
    """As in a container that waited: its process never gets to the interpreter's own end."""
    program = tmp_path / "p.py"
    program.write_text(AT_ONCE + more)
    ending = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); import run_code\n"
        "try:\n    run_code.run_python(sys.argv[2])\n"
        "except SystemExit as end:\n    sys.stdout.flush(); sys.stderr.flush(); os._exit(end.code)\n"
    )
    place = Path(__file__).parents[3] / "sandbox-images" / "base" / "goex"
    command = [sys.executable, "-I", "-S", "-c", ending, str(place), str(program)]
    done = subprocess.run(command, capture_output=True, timeout=300)
    assert done.stdout == b"no newlinethread\nat exit\ndropped\n", done
    assert (tmp_path / "p.py.out").read_text() == "written"
    assert (tmp_path / "p.py.loop").read_text() == "written too"
    assert done.returncode == {"": 0, "raise SystemExit(3)": 3}.get(more, 1)
    said = done.stderr.decode()
    assert said == {"sys.exit('why')": "why\n"}.get(more, "") or (more == "1 / 0" and "run_code" not in said)


@pytest.mark.docker
async def test_a_traceback_shows_the_programs_frames_alone(tmp_path: Path, code_image: str) -> None:
    result = await ran(tmp_path, "def f():\n    return 1 / 0\n\ntry:\n    f()\nexcept ZeroDivisionError:\n    [][1]\n")
    said = result.stderr.decode()
    assert result.exit_code == 1
    assert said.startswith(
        'Traceback (most recent call last):\n  File "/goex/job/program.py", line 5, in <module>\n    f()'
    )
    assert "run_code" not in said
    assert "ZeroDivisionError: division by zero" in said
    assert said.endswith("IndexError: list index out of range\n")
    wrong = (await ran(tmp_path, "x = (\n")).stderr.decode()
    assert wrong.startswith('  File "/goex/job/program.py", line 1')
    assert wrong.endswith("SyntaxError: '(' was never closed\n")
    assert (await ran(tmp_path, "import sys; sys.exit('enough')")).stderr == b"enough\n"


@pytest.mark.docker
async def test_what_a_program_sees(tmp_path: Path, code_image: str) -> None:
    look = "import json, os; print(json.dumps(dict(os.environ)))"
    python = json.loads((await ran(tmp_path, look, SLACK_BOT_TOKEN="xoxb-goex-1")).stdout)
    shell = json.loads((await ran(tmp_path, f"python3 -I -c '{look}'", "shell", SLACK_BOT_TOKEN="xoxb-goex-1")).stdout)
    for seen in (python, shell):
        wanted = {**environment.VARIABLES, "SLACK_BOT_TOKEN": "xoxb-goex-1"}
        assert {name: seen.get(name) for name in wanted} == wanted
        assert set(seen) - set(wanted) <= {"PATH", "HOME", "LANG", "HOSTNAME", "PWD", "SHLVL", "_", "LC_CTYPE"}
    files = "import pathlib; print(sorted(p.name for p in pathlib.Path('/goex/job').iterdir()))"
    result = await ran(tmp_path, files, files={"google.json": "{}"})
    assert result.stdout.decode().strip() == "['ca.pem', 'code.json', 'google.json', 'program.py']"


@pytest.mark.docker
async def test_shell_programs(tmp_path: Path, code_image: str) -> None:
    program = "words=(a b)\necho ${words[1]}\ncurl -sS http://service.test/x\necho\ncurl -sS http://[::1]:9/\nexit 3\n"
    result = await ran(tmp_path, program, "shell")
    said = b"b\nGET http://service.test/x HTTP/1.1\nGET http://[::1]:9/ HTTP/1.1"
    assert (result.exit_code, result.stdout) == (3, said), result
    base = await ran(tmp_path, "echo $0 $https_proxy", "shell", image="base")
    assert base.stdout == b"/goex/job/program.sh http://127.0.0.1:3128\n"


@pytest.mark.docker
@pytest.mark.parametrize("waits", [False, True])
async def test_libraries_find_the_proxy_and_trust_one_certificate(tmp_path: Path, code_image: str, waits: bool) -> None:
    program = """
import os, ssl, urllib.request, requests, httpx, certifi, httplib2
import subprocess, sys
url = "http://service.test/x"
print(urllib.request.urlopen(url).read().decode())
print(requests.get(url).text)
print(httpx.get(url).text)
for get in (lambda url: urllib.request.urlopen(url).read().decode(), lambda url: requests.get(url).text,
            lambda url: httpx.get(url).text):
    assert get("http://localhost:9/") == "GET http://localhost:9/ HTTP/1.1"  # a service of the person's own, outside
sub = "import requests; print(requests.get('http://sub.test/').text)"
print(subprocess.check_output([sys.executable, "-c", sub], text=True))
places = certifi.where(), httplib2.certs.where(), ssl.get_default_verify_paths().cafile
places += ("/etc/ssl/certs/ca-certificates.crt",)
print({os.path.realpath(place) for place in places})
"""
    result = await ran(tmp_path, program, waits=waits)
    line = "GET http://service.test/x HTTP/1.1"
    assert result.stdout.decode().split("\n") == [
        *[line] * 3,
        "GET http://sub.test/ HTTP/1.1",
        "",
        "{'/goex/job/ca.pem'}",
        "",
    ], result


@pytest.mark.docker
async def test_node_programs_use_the_proxy_in_every_way_that_node_has(tmp_path: Path, code_image: str) -> None:
    program = """
node - <<'JS'
const http = require('http'), https = require('https')
const url = 'http://service.test:8080/x?y=1'
;(async () => {
  console.log(await (await fetch(url, { method: 'POST', body: 'z' })).text())
  const show = (done) => (answer) => answer.on('data', (data) => console.log(String(data))).on('end', done)
  await new Promise((done) => http.get(url, show(done)))
  try { await fetch('https://secure.test/x') } catch (error) { console.log(error.cause.code || error.cause.message) }
  https.get('https://secure.test:444/x').on('error', (error) => console.log(error.code || error.message))
})()
JS
"""
    result = await ran(tmp_path, program, "shell")
    line = "http://service.test:8080/x?y=1 HTTP/1.1"
    said = result.stdout.decode().splitlines()
    assert said[:2] == [f"POST {line}", f"GET {line}"], result
    assert len(said) == 4  # the gateway of this test grants the tunnel, and hangs up: both hear of it


@pytest.mark.docker
async def test_a_program_without_end_is_ended_with_what_it_said(tmp_path: Path, code_image: str) -> None:
    from runtimes.sandbox.contract import Limits

    sandbox = DockerSandbox(f"test-run-code-{os.getpid()}")
    job = environment.job(
        action_id="a1",
        language="python",
        program="print('so far')\nimport time; time.sleep(60)",
        ca_pem="",
        socket_dir=str(tmp_path),
        env={},
    )
    result = await sandbox.run(job, Profile(image="code", limits=Limits(seconds=2)))
    await sandbox.close()
    assert (result.ended, result.stdout) == (Ended.TIMEOUT, b"so far\n")


@pytest.mark.parametrize("name", ["code.json", "ca.pem", "program.py", "program.sh", "../x", ".x", "", "a/b"])
def test_names_that_a_file_beside_a_program_cannot_have(name: str) -> None:
    with pytest.raises(InvalidInput, match="beside a program"):
        environment.job(
            action_id="a", language="python", program="", ca_pem="", socket_dir="/x", env={}, files={name: ""}
        )


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "NODE_OPTIONS", "SSL_CERT_FILE", "", "A=B", "1A", "A\n"])
def test_names_that_a_variable_of_a_programs_own_cannot_have(name: str) -> None:
    with pytest.raises(InvalidInput, match="variable"):
        environment.job(action_id="a", language="python", program="", ca_pem="", socket_dir="/x", env={name: ""})


def test_half_a_character_is_refused() -> None:
    with pytest.raises(InvalidInput, match="half a character"):
        environment.job(action_id="a", language="python", program="\ud800", ca_pem="", socket_dir="/x", env={})


@pytest.mark.parametrize(
    ("client", "proxies", "certificates"),
    [
        ("curl", ("http_proxy", "HTTPS_PROXY"), ("CURL_CA_BUNDLE",)),
        ("requests, urllib, httpx", ("http_proxy", "https_proxy"), ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")),
        ("slack_sdk", ("HTTPS_PROXY", "https_proxy"), ("SSL_CERT_FILE",)),
        ("googleapiclient", ("http_proxy", "https_proxy"), ("HTTPLIB2_CA_CERTS",)),
        ("Go", ("HTTP_PROXY", "HTTPS_PROXY"), ("SSL_CERT_FILE",)),
        ("node", ("https_proxy",), ("NODE_EXTRA_CA_CERTS",)),
        ("git", ("https_proxy",), ("GIT_SSL_CAINFO",)),
        ("gRPC", ("https_proxy",), ("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",)),
    ],
)
def test_variables_by_client(client: str, proxies: tuple[str, ...], certificates: tuple[str, ...]) -> None:
    seen = environment.VARIABLES
    assert {seen.get(name) for name in proxies} == {"http://127.0.0.1:3128"}, client
    assert {seen.get(name) for name in certificates} == {"/goex/job/ca.pem"}, client
    assert seen["no_proxy"] == seen["NO_PROXY"] == ""  # nothing goes past it, not even to localhost
