"""The PyPI package jira: what its client's functions ask for, and its issues.

Rules: what a function sends beside what it is given by name isn't known where the library puts it together. An issue's
own address is the server's, with a number in it that nobody knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from mapper.code.abstract_values import (
    UNKNOWN,
    Fields,
    Lit,
    Stream,
    Thing,
    Value,
    choices,
    each,
    joined,
    parts_of,
    plain,
    text,
)
from mapper.code.sent_requests import Request

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

_MADE = frozenset({"jira.JIRA", "jira.client.JIRA"})
_CLOUD = ".atlassian.net"


@dataclass(frozen=True, slots=True)
class _Asks:
    """One function: its arguments in their order, and what it asks for. `sent` are the names that arguments are sent
    under; where `more` is, the library adds to them. `first` is asked for before."""

    arguments: tuple[str, ...]
    verb: str
    path: str
    sent: tuple[tuple[str, str], ...] = ()
    more: bool = False
    gives: str = ""
    first: str = ""


_ISSUE = "issue/{issue}"
_FUNCTIONS = {
    "add_attachment": _Asks(("issue", "attachment", "filename"), "POST", f"{_ISSUE}/attachments", more=True),
    "add_comment": _Asks(("issue", "body", "visibility"), "POST", f"{_ISSUE}/comment",
                         (("body", "body"), ("visibility", "visibility"))),
    "add_remote_link": _Asks(("issue", "destination"), "POST", f"{_ISSUE}/remotelink", more=True),
    "add_simple_link": _Asks(("issue", "object"), "POST", f"{_ISSUE}/remotelink", (("object", "object"),)),
    "add_vote": _Asks(("issue",), "POST", f"{_ISSUE}/votes"),
    "add_worklog": _Asks(("issue", "timeSpent", "timeSpentSeconds"), "POST", f"{_ISSUE}/worklog", more=True),
    "comment": _Asks(("issue", "comment"), "GET", f"{_ISSUE}/comment/{{comment}}", more=True),
    "comments": _Asks(("issue", "expand"), "GET", f"{_ISSUE}/comment", more=True),
    "component": _Asks(("id",), "GET", "component/{id}"),
    "create_issue_link": _Asks(("type", "inwardIssue", "outwardIssue", "comment"), "POST", "issueLink", more=True,
                               first="issueLinkType"),
    "current_user": _Asks(("field",), "GET", "myself"),
    "delete_issue_link": _Asks(("id",), "DELETE", "issueLink/{id}"),
    "editmeta": _Asks(("issue",), "GET", f"{_ISSUE}/editmeta"),
    "fields": _Asks((), "GET", "field"),
    "find_transitionid_by_name": _Asks(("issue", "transition_name"), "GET", f"{_ISSUE}/transitions"),
    "issue": _Asks(("id", "fields", "expand", "properties"), "GET", "issue/{id}",
                   (("fields", "fields"), ("expand", "expand"), ("properties", "properties")), gives="issue"),
    "issue_link_types": _Asks((), "GET", "issueLinkType"),
    "issue_types": _Asks((), "GET", "issuetype"),
    "issue_types_for_project": _Asks(("projectIdOrKey",), "GET", "project/{projectIdOrKey}/statuses"),
    "myself": _Asks((), "GET", "myself"),
    "priorities": _Asks((), "GET", "priority"),
    "project": _Asks(("id", "expand"), "GET", "project/{id}", (("expand", "expand"),)),
    "project_components": _Asks(("project",), "GET", "project/{project}/components"),
    "project_versions": _Asks(("project",), "GET", "project/{project}/versions"),
    "projects": _Asks(("expand",), "GET", "project", (("expand", "expand"),)),
    "remote_links": _Asks(("issue",), "GET", f"{_ISSUE}/remotelink"),
    "resolutions": _Asks((), "GET", "resolution"),
    "search_users": _Asks(("user", "startAt", "maxResults"), "GET", "user/search", more=True),
    "server_info": _Asks((), "GET", "serverInfo"),
    "statuses": _Asks((), "GET", "status"),
    "transitions": _Asks(("issue", "id", "expand"), "GET", f"{_ISSUE}/transitions",
                         (("id", "transitionId"), ("expand", "expand"))),
    "user": _Asks(("id",), "GET", "user", more=True),
    "votes": _Asks(("issue",), "GET", f"{_ISSUE}/votes"),
    "watchers": _Asks(("issue",), "GET", f"{_ISSUE}/watchers"),
    "worklogs": _Asks(("issue",), "GET", f"{_ISSUE}/worklog"),
}  # fmt: skip
_SPECIAL = frozenset({"search_issues", "enhanced_search_issues", "create_issue", "transition_issue", "close"})
_OF_AN_ISSUE = frozenset({"update", "delete", "permalink", "get_field"})


def made(reader: Following, name: str, args: Sequence[Value], given: Fields) -> Value | None:
    """A client, where a call of something imported gives one: it looks at once what its server is."""
    if name not in _MADE:
        return None
    server = given.get("server") or (args[0] if args else Lit(None))
    options = given.get("options") or (args[1] if len(args) > 1 else Lit(None))
    if isinstance(server, Fields):
        server, options = Lit(None), server
    if isinstance(options, Fields):
        server = options.get("server") or server
        known = not options.more and not any(
            options.get(one) is not None for one in ("rest_path", "context_path", "agile_rest_path")
        )
        version = options.get("rest_api_version") or Lit("2")
    else:
        known, version = options == Lit(None), Lit("2")
    known = known and not given.more and server != Lit(None)
    bases = [text((*_stripped(one), "/rest/api/", *parts_of(other))) for one, other in each(server, version)]
    owner = _thing("client", joined(bases) if known and bases else UNKNOWN)
    if given.get("get_server_info") != Lit(False):
        _send(reader, owner, "GET", "serverInfo")
    return owner


def attribute(owner: Thing, name: str) -> Value | None:
    """An attribute of a client or an issue; None for what is only a function."""
    if owner["cls"] == "issue":
        return None if name in _OF_AN_ISSUE else owner["key"] if name == "key" else UNKNOWN
    return None if name in _FUNCTIONS or name in _SPECIAL or name.startswith("__") else UNKNOWN


def called(reader: Following, owner: Thing, name: str, args: list[Value], given: Fields) -> Value:
    """A function of a client or an issue."""
    if owner["cls"] == "issue":
        if name == "update":
            query = Fields() if given.get("notify") is None else Fields((("notifyUsers", UNKNOWN),))
            sent = Fields((("fields", UNKNOWN), ("update", UNKNOWN)))
            _send(reader, owner, "PUT", "issue/{}", (UNKNOWN,), sent, query=query)
            _send(reader, owner, "GET", "issue/{}", (UNKNOWN,))
        elif name == "delete":
            _send(reader, owner, "DELETE", "issue/{}", (UNKNOWN,), query=Fields((("deleteSubtasks", UNKNOWN),)))
        return UNKNOWN
    match name:
        case "search_issues" | "enhanced_search_issues":
            return _searched(reader, owner, name, args, given)
        case "create_issue":
            return _created(reader, owner, args, given)
        case "transition_issue":
            issue = given.get("issue") or (args[0] if args else UNKNOWN)
            known, to = plain(given.get("transition") or (args[1] if len(args) > 1 else UNKNOWN))
            if not (known and str(to).isdecimal()):
                _send(reader, owner, "GET", "issue/{}/transitions", (issue,))
            _send(reader, owner, "POST", "issue/{}/transitions", (issue,),
                  Fields((("transition", UNKNOWN), ("fields", UNKNOWN), ("update", UNKNOWN))))  # fmt: skip
        case "__enter__":
            return owner
        case _ if name in _FUNCTIONS:
            return _asked(reader, owner, _FUNCTIONS[name], args, given)
    return UNKNOWN


def _asked(reader: Following, owner: Thing, asks: _Asks, args: list[Value], given: Fields) -> Value:
    named = {**dict(zip(asks.arguments, args, strict=False)), **dict(given.items)}
    names = [part[1:-1] for part in asks.path.split("/") if part.startswith("{")]
    inside = tuple(named.pop(one, UNKNOWN) for one in names)
    if asks.path == "issue/{id}" and _is_issue(inside[0]):
        return inside[0]  # which isn't asked for again
    if asks.first:
        _send(reader, owner, "GET", asks.first)
    sent = {name: named.pop(argument) for argument, name in asks.sent if argument in named}
    sent = {name: value for name, value in sent.items() if value != Lit(None)}
    path = "/".join("{}" if part.startswith("{") else part for part in asks.path.split("/"))
    fields = Fields(tuple(sent.items()), asks.more or bool(named) or given.more)
    if asks.verb == "POST":
        _send(reader, owner, asks.verb, path, inside, fields, kind="any" if "attachment" in path else "json")
    else:
        _send(reader, owner, asks.verb, path, inside, query=fields)
    return _issue(owner, inside[0]) if asks.gives == "issue" else UNKNOWN


def _searched(reader: Following, owner: Thing, name: str, args: list[Value], given: Fields) -> Value:
    """Where a search is asked for: the cloud has another place for it than a server of one's own."""
    jql = given.get("jql_str") or (args[0] if args else UNKNOWN)
    posts = given.get("use_post") not in (None, Lit(False))
    found = Fields((("jql", jql),), True)
    for (base,) in each(owner["base"]):
        first = next(iter(parts_of(base)), None)
        host = urlsplit(first).hostname or "" if isinstance(first, str) else ""
        for path in ("search/jql", "search"):
            if path == "search" and (name != "search_issues" or host.endswith(_CLOUD)):
                continue
            if path == "search/jql" and host and not host.endswith(_CLOUD):
                continue
            client = _thing("client", base)
            _send(reader, client, "GET", "field")  # how fields are called
            if posts:
                _send(reader, client, "POST", path, (), found)
            else:
                _send(reader, client, "GET", path, query=found)
    return Stream(_issue(owner, UNKNOWN))


def _created(reader: Following, owner: Thing, args: list[Value], given: Fields) -> Value:
    fields = given.get("fields") or (args[0] if args else Lit(None))
    if fields == Lit(None):
        fields = given.without("fields", "prefetch")
    project = fields.get("project") if isinstance(fields, Fields) else UNKNOWN
    kind = fields.get("issuetype") if isinstance(fields, Fields) else UNKNOWN
    looked_up = [isinstance(plain(one or UNKNOWN)[1], str | int) for one in (project, kind)]
    if looked_up[0]:
        _send(reader, owner, "GET", "project/{}", (project or UNKNOWN,))
    if looked_up[1] and looked_up[0]:
        _send(reader, owner, "GET", "project/{}", (UNKNOWN,), query=Fields((("expand", Lit("issueTypes")),)))
    elif looked_up[1]:
        _send(reader, owner, "GET", "issuetype")
    _send(reader, owner, "POST", "issue", (), Fields((("fields", UNKNOWN if any(looked_up) else fields),)))
    if given.get("prefetch") != Lit(False):
        _send(reader, owner, "GET", "issue/{}", (UNKNOWN,))
    return _issue(owner, UNKNOWN)


def _is_issue(value: Value) -> bool:
    return isinstance(value, Thing) and value.kind == "table" and value["lib"] == "jira" and value["cls"] == "issue"


def _issue(owner: Thing, key: Value) -> Thing:
    return Thing("table", (("lib", "jira"), ("cls", "issue"), ("base", owner["base"]), ("key", key)))


def _thing(cls: str, base: Value) -> Thing:
    return Thing("table", (("lib", "jira"), ("cls", cls), ("base", base)))


def _segment(value: Value) -> Value:
    """What a part of an address is: an issue stands for its key."""
    if isinstance(value, Thing) and _is_issue(value):
        value = value["key"]
    known, said = plain(value)
    return Lit(quote(str(said), safe="")) if known and type(said) in (str, int) else UNKNOWN


def _stripped(base: Value) -> tuple[Any, ...]:
    parts = [*parts_of(base)]
    if isinstance(parts[-1], str):
        parts[-1] = parts[-1].rstrip("/")
    return tuple(parts)


def _send(
    reader: Following, owner: Thing, verb: str, path: str, inside: Sequence[Value] = (), body: Fields | None = None,
    *, query: Fields | None = None, kind: Any = "json",
) -> None:  # fmt: skip
    slots = [joined(map(_segment, choices(one))) for one in inside]
    for base, *found in each(owner["base"], *slots):
        left = iter(found)
        where: list[Any] = [*_stripped(base)]
        for part in path.split("/"):
            where += ["/", *(parts_of(next(left)) if part == "{}" else (part,))]
        reader.seen.requests.append(
            Request(
                line=reader.line,
                verb=Lit(verb),
                url=text(where),
                query=query or Fields(),
                body=body or Fields(),
                kind="none" if body is None else kind,
                sdk=True,
            )
        )
