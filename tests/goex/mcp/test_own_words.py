"""What a client of the MCP server sends isn't written to the terminal of whoever started it."""

from __future__ import annotations

import http.client
import subprocess
import sys

import pytest

from tests.support import mcp
from tests.support.daemon import Daemon

COMMANDS = "\x1b[2J\x1b]52;c;cm0=\x07Approval passphrase: \x9b31m"


@pytest.mark.promise(26)
@pytest.mark.parametrize(("header", "status"), [("Host", 421), ("Origin", 403), ("Mcp-Session-Id", 404)])
def test_no_header_commands_the_terminal(daemon: Daemon, token: str, header: str, status: int) -> None:
    server = mcp.begun(daemon, "", "--http", "--port", "0", err=None)
    assert server.stdout and server.stderr
    try:
        port = int(server.stdout.readline().decode().strip().partition("//")[2].partition("/")[0].rpartition(":")[2])
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        headers = {"Host": f"127.0.0.1:{port}", "Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        headers |= {"Accept": "application/json, text/event-stream", header: COMMANDS}
        line.putrequest("POST", "/mcp", skip_host=True)
        for name, value in headers.items():
            line.putheader(name, value)
        line.putheader("Content-Length", "2")
        line.endheaders(b"{}")
        assert line.getresponse().status == status
        line.close()
    finally:
        server.terminate()
        said = server.stderr.read().decode(errors="surrogateescape")
        server.wait()
    assert "\x1b" not in said and "\x9b" not in said and "passphrase" not in said


DEFECTS = """
import threading
from goex.logs import own_words_to_stderr
own_words_to_stderr("warning")
class Ends:
    def __del__(self):
        fails()
def fails():
    raise ValueError(chr(27) + "[2J Approval " + "passphrase:")
thread = threading.Thread(target=fails)
thread.start()
thread.join()
Ends()
"""


@pytest.mark.promise(26)
def test_a_defect_beside_the_server_says_what_it_is_and_nothing_of_others() -> None:
    """In a thread, or as something ends, where Python itself would write all of it."""
    said = subprocess.run([sys.executable, "-c", DEFECTS], capture_output=True, text=True, check=True).stderr
    assert "\x1b" not in said and "passphrase" not in said
    assert said.count("ValueError") == 2 and said.count("met a defect") == 2
