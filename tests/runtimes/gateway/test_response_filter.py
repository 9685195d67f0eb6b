"""What of an answer's head a container gets, without a wire."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from runtimes.gateway.admission import Admission
from runtimes.gateway.http_client import BadAnswer, UpstreamRequest
from runtimes.gateway.http_server import ClientConnection, ClientResponse, RequestBody
from runtimes.gateway.proxy_response import LargeAnswers, ProxiedResponse
from runtimes.gateway.redactor import Redactor
from runtimes.gateway.report import Reporter, RequestReport
from runtimes.gateway.response_filter import passed_headers, planned_headers
from runtimes.gateway.rule_match import RulePolicy
from runtimes.gateway.stream_redactor import StreamRedactor
from tests.runtimes.gateway.ruled import CHAT, PLAN, asked, bearer
from tests.runtimes.gateway.support import Watch

ASKED = "https://chat.example/api/channels/c/messages"
HEX = "0123456789abcdef0123456789abcdef"
NUMBER = "9007199"


def test_an_address_beside_a_link_s_own_is_withheld_with_it() -> None:
    covers = RulePolicy(PLAN).covers
    next_, other = f'<{ASKED}?limit=1>; rel="next"', "https://files.example/a?sig=b"
    said = f'{next_}, <{ASKED}?limit=2>; rel="last"; anchor="{other}", <{other}>; rel="up"'
    assert passed_headers([("link", said)], ASKED, covers, str) == (
        [("link", next_), ("x-goex-withheld", "link")], ""
    )  # fmt: skip


@pytest.mark.parametrize(
    ("more", "passes"),
    [
        ('rel="https://chat.example/rels/next"', True),
        ('rel="next"; title="see http://x"', True),
        (f'rel="next"; anchor="{ASKED}"', True),
        ('rel="next"; anchor="/upload?session=abc"', False),
        ("rel=next; Anchor=/upload", False),
        ('rel="next"; anchor="//["', False),
        (r'rel="next"; anchor="https:\/\/other.example"', False),
        ('rel="next"; title="/upload?session=abc"', False),
    ],
)
def test_an_anchor_is_an_address_and_a_relation_is_a_name(more: str, passes: bool) -> None:
    said = f"<{ASKED}?limit=1>; {more}"
    expected = ("link", said) if passes else ("x-goex-withheld", "link")
    assert passed_headers([("link", said)], ASKED, RulePolicy(PLAN).covers, str) == ([expected], "")


def test_an_address_that_cannot_be_read_leads_nowhere() -> None:
    found, leads = passed_headers([("location", "//[")], ASKED, RulePolicy(PLAN).covers, str)
    assert ([name for name, _ in found], leads) == (["x-goex-location"], "a place that can't be read")


@pytest.mark.parametrize("host", ["{}.files.example", "a-{}.files.example", "{}"])
def test_no_echo_is_a_host_s_name_that_an_answer_leads_to(host: str) -> None:
    secret = "AbC7Qf3Zr9xW2kLm"
    location = f"https://{host.format(secret)}/x"
    found, leads = passed_headers(
        [("location", location)], ASKED, RulePolicy(PLAN).covers, Redactor([secret.encode()]).text
    )
    assert secret.lower() not in f"{found}{leads}".lower() and [name for name, _ in found] == ["x-goex-location"]


def test_the_number_of_an_upload_is_withheld_as_its_address_is() -> None:
    headers = [("x-guploader-uploadid", "AAANsUk"), ("x-goog-upload-status", "active")]
    assert passed_headers(headers, ASKED, RulePolicy(PLAN).covers, str) == ([("x-goog-upload-status", "active")], "")


def test_a_document_that_names_what_a_service_hands_out_opens_none_of_it() -> None:
    """An imported document may call any header an argument; those are passed on beside the usual ones."""
    minted = ("set-cookie", "x-subject-token", "x-auth-token", "x-session-id", "authentication-info", "authorization")
    wanted = ("x-wanted", "mcp-session-id", "x-next-page-token", "continuation-token", "location")
    headers = [*((name, "abc") for name in minted), *((name, ASKED) for name in wanted)]
    found = passed_headers(headers, ASKED, RulePolicy(PLAN).covers, str, (*minted, *wanted))
    assert found == ([(name, ASKED) for name in wanted], "")


def test_no_echo_is_a_header_s_name() -> None:
    text = Redactor([HEX.encode()]).text
    assert planned_headers([(f"x-ratelimit-{HEX}", "1"), ("ratelimit-reset-2", "1")], text) == [
        ("ratelimit-reset-2", "1")
    ]


class Played:
    """A stream that says what is there, and keeps what is written."""

    def __init__(self, said: bytes = b"") -> None:
        self._said = said
        self.written = b""

    def ready(self) -> bytes | None:
        said, self._said = self._said, b""
        return said

    async def read(self) -> bytes:
        return self.ready() or b""

    async def readable(self) -> None:
        pass

    async def write(self, data: bytes) -> None:
        self.written += data


async def given(method: str, answer: bytes) -> bytes:
    """What the container gets of an answer, with a secret that is a number."""
    policy, box = RulePolicy(PLAN), Played()
    admission = policy.admit(asked("GET /api/users/u1", bearer()))
    assert isinstance(admission, Admission)
    admission = replace(admission, rule=replace(admission.rule, method=method))
    call, client = UpstreamRequest(Played(answer), CHAT), ClientConnection(box)
    await call.begin(method, admission.target, (), None)
    reporter = Reporter(Watch().observer(), policy)
    report = RequestReport(reporter, admission, StreamRedactor([NUMBER.encode()]))
    body, reply = RequestBody(client, admission.asked.head), ClientResponse(client)
    response = ProxiedResponse(admission, client, body, reply, report, (), LargeAnswers())
    with contextlib.suppress(BadAnswer):  # a body that isn't as long as it says is cut off
        await response.forward(call)
    return box.written


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_no_echo_is_a_body_s_length(method: str) -> None:
    for length, told in ((NUMBER, False), ("9007198", True)):
        found = await given(method, f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode())
        assert found.startswith(b"HTTP/1.1 200 ")
        assert (f"content-length: {length}".encode() in found, length.encode() in found) == (told, told)


NUMBERED = "https://api.github.com/repositories/7/issues?page=2"


@pytest.mark.parametrize(
    ("asked", "link", "passed"),
    [
        ("/repos/o/r/issues", f'<{NUMBERED}>; rel="next"',
         '<https://api.github.com/repos/o/r/issues?page=2>; rel="next"'),
        ("/orgs/o/repos", '</organizations/7/repos?page=2>; rel="next"',
         '<https://api.github.com/orgs/o/repos?page=2>; rel="next"'),
        ("/users/u/repos", '</user/7/repos?page=2>; rel="next"',
         '<https://api.github.com/users/u/repos?page=2>; rel="next"'),
        ("/api/v3/repos/o/r/issues", '</api/v3/repositories/7/issues?page=2>; rel="next"',
         '<https://api.github.com/api/v3/repos/o/r/issues?page=2>; rel="next"'),
        ("/repos/o/r/pulls", f'<{NUMBERED}>; rel="next"', ""),  # of another kind
        ("/repos/o/r/issues/1", f'<{NUMBERED}>; rel="next"', ""),
        ("/orgs/o/issues", f'<{NUMBERED}>; rel="next"', ""),
        ("/repos/o/r/issues", f"<{NUMBERED}>; title=x", ""),
        ("/repos/o/r/issues", f'<{NUMBERED.replace("api.github.com", "x.example")}>; rel="next"', ""),
        ("/repos/o/r/issues", f'<{NUMBERED}&key=1>; rel="next"', ""),  # no rule has that name
        ("/repos/o/r/issues?page=2", f'<{NUMBERED}>; rel="next"', ""),  # the same once more
    ],
)  # fmt: skip
def test_a_link_to_another_page_by_a_number_leads_where_the_rule_is(asked: str, link: str, passed: str) -> None:
    def has(url: str) -> bool:
        return url.startswith("https://api.github.com") and "/repositories/" not in url and "key=" not in url

    headers, _ = passed_headers([("link", link)], f"https://api.github.com{asked}", has, str)
    assert headers == ([("link", passed)] if passed else [("x-goex-withheld", "link")])
