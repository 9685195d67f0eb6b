"""Commands that send requests: curl, wget, HTTPie and `gh api`, by their own command lines."""

from __future__ import annotations

import re
from collections.abc import Callable

from mapper.code import http
from mapper.code.abstract_values import UNKNOWN, Fields, Lit, OneOf, Text, Value, each, parts_of, text
from mapper.code.routes import GAP
from mapper.code.sent_requests import Kind, Request, Seen

# Options that take a value, by their letter; those that matter are looked at below.
_LETTERS = frozenset("XdHuoAbcCDeEFKmPQrtTUwxyYzh")
_LONG = frozenset(
    {
        "request", "data", "data-raw", "data-binary", "data-ascii", "data-urlencode", "json", "form", "form-string",
        "header", "user", "output", "user-agent", "cookie", "cookie-jar", "max-time", "connect-timeout", "retry",
        "retry-delay", "retry-max-time", "url", "upload-file", "referer", "write-out", "proxy", "cacert", "cert", "key",
        "capath", "range", "resolve", "interface", "limit-rate", "oauth2-bearer", "aws-sigv4", "dump-header", "config",
        "url-query", "request-target", "connect-to", "unix-socket", "proto", "max-redirs", "output-dir", "variable",
        "expand-url", "netrc-file", "noproxy", "proxy-user", "continue-at", "speed-limit", "speed-time", "trace",
    }
)  # fmt: skip
_SHORT = {
    "X": "request", "d": "data", "H": "header", "u": "user", "F": "form", "T": "upload-file", "o": "output",
    "G": "get", "I": "head", "K": "config", "L": "location",
}  # fmt: skip
# A line of a config file: `name = value`, `name: value`, `name "value"`, `-H value`.
_CONFIG = re.compile(
    r"(?P<name>-?-?[A-Za-z0-9.\-]+)(?:(?:[ \t]*[=:][ \t]*|[ \t]+)"
    r'(?:"(?P<quoted>(?:[^"\\]++|\\.)*+)"(?:[ \t].*)?|(?P<plain>[^"\s]\S*)(?:[ \t]+#.*)?))?'
)
_CONFIG_ESCAPE = re.compile(r"\\(.)")
_CONFIG_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_DATA = frozenset({"data", "data-raw", "data-binary", "data-ascii", "data-urlencode", "json"})


def _options(args: list[Value]) -> list[tuple[str, Value | None]]:
    """(option, value) in order; ("", word) for what is none."""
    found: list[tuple[str, Value | None]] = []
    place = 0
    while place < len(args):
        arg = args[place]
        place += 1
        parts = parts_of(arg)
        first = parts[0] if isinstance(parts[0], str) else ""
        if first.startswith("--") and len(first) > 2:
            name, equals, _ = first[2:].partition("=")
            if equals:
                found.append((name, text((first[2 + len(name) + 1 :], *parts[1:]))))
            elif name in _LONG:
                found.append((name, args[place] if place < len(args) else UNKNOWN))
                place += 1
            else:
                found.append((name, None))
        elif first.startswith("-") and len(first) > 1:
            letters = first[1:]
            for at, letter in enumerate(letters):
                name = _SHORT.get(letter, letter)
                if letter in _LETTERS:
                    rest = text((letters[at + 1 :], *parts[1:]))
                    if rest == Lit(""):
                        rest = args[place] if place < len(args) else UNKNOWN
                        place += 1
                    found.append((name, rest))
                    break
                found.append((name, None))
        else:
            found.append(("", arg))
    return found


# Options by which curl writes files whose names aren't looked at here.
_WRITING = frozenset(
    {
        "O", "D", "c", "J", "K", "config", "remote-name", "remote-name-all", "remote-header-name", "dump-header",
        "cookie-jar", "trace", "trace-ascii", "stderr", "etag-save", "hsts", "alt-svc", "libcurl", "output-dir",
    }
)  # fmt: skip


def curl(seen: Seen, line: int, args: list[Value], text_in: Value | None, file: Callable[[Value], Value]) -> None:
    """One curl command: a request for each of its addresses; `file` is what is in a file of that name."""
    seen.spend(len(args))
    several = sum(isinstance(one, OneOf) for one in args) > 1  # which of them go together isn't known
    for ways in [args] if several else each(*args):
        for part in _parted(_configured(seen, list(ways), text_in, file)):
            _curl(seen, line, part, text_in, file)


def written(args: list[Value]) -> list[Value]:
    """The names of the files that a curl command writes; unknown among them: any."""
    options = _options(args)
    found = [value if value is not None else UNKNOWN for name, value in options if name == "output"]
    return [*found, *(UNKNOWN for name, _ in options if name in _WRITING)]


def _parted(args: list[Value]) -> list[list[Value]]:
    made: list[list[Value]] = [[]]
    for arg in args:
        if arg in (Lit("--next"), Lit("-:")):
            made.append([])
        else:
            made[-1].append(arg)
    return made


def _configured(seen: Seen, args: list[Value], text_in: Value | None, file: Callable[[Value], Value]) -> list[Value]:
    """The arguments, with the options of a file (`-K file`) in its place, where it is known what is in it."""
    made: list[Value] = []
    place = 0
    while place < len(args):
        arg = args[place]
        place += 1
        if arg not in (Lit("-K"), Lit("--config")):
            made.append(arg)
            continue
        name = args[place] if place < len(args) else Lit("-")  # the grammar drops a `-` before a here-document
        place += 1
        held = text_in if name == Lit("-") else file(name)
        options = _in_file(held) if held is not None else None
        made += [arg, name] if options is None else options
        seen.spend(len(options or ()))
    return made


def _in_file(held: Value) -> list[Value] | None:
    """The options that a config file of curl's has; None where they aren't known."""
    if not isinstance(held, Lit | Text):
        return None
    made: list[Value] = []
    for one in "".join(part if isinstance(part, str) else GAP for part in parts_of(held)).split("\n"):
        written = one.strip(" \t\r")
        if not written or written.startswith("#"):
            continue
        found = _CONFIG.fullmatch(written)
        if found is None or GAP in found["name"]:
            return None
        name = found["name"] if found["name"].startswith("-") else f"--{found['name']}"
        made.append(Lit(name))
        value = found["plain"]
        if found["quoted"] is not None:
            value = _CONFIG_ESCAPE.sub(lambda mark: _CONFIG_ESCAPED.get(mark[1], mark[1]), found["quoted"])
        if value is not None:
            made.append(text(part for at, each in enumerate(value.split(GAP)) for part in ([None] * bool(at) + [each])))
    return made


def _curl(seen: Seen, line: int, args: list[Value], text_in: Value | None, file: Callable[[Value], Value]) -> None:
    options = _options(args)
    urls = [value for name, value in options if name in ("", "url") and value is not None]
    data = [(name, _read(name, value, text_in, file)) for name, value in options if name in _DATA and value is not None]
    names = {name for name, _ in options}
    verb: Value = Lit("POST" if data or names & {"form", "form-string"} else "PUT" if "upload-file" in names else "GET")
    if "get" in names:
        verb = Lit("GET")
    if "head" in names:
        verb = Lit("HEAD")
    for name, value in options:
        if name == "request" and value is not None:
            verb = value
    if names & {"config", "expand-url", "variable", "request-target"}:
        seen.note(f"Line {line}: curl reads what it asks for from elsewhere.")
    headers = [str(parts_of(value)[0] or "").lower() for name, value in options if name == "header" and value]
    fields, kind = _sent(seen, data, any("json" in one for one in headers if one.startswith("content-type")))
    query = Fields()
    if "get" in names:
        query, fields, kind = (fields if kind == "form" else Fields(more=bool(data))), Fields(), "none"
    for name, value in options:
        if name == "url-query" and value is not None:
            query = query.merged(http.of_written(value)[0])
    if names & {"form", "form-string", "upload-file"}:
        fields, kind = Fields(more=True), "any"
    signed = "AWS Signature Version 4" if "aws-sigv4" in names else "Digest" if "digest" in names else ""
    for url in urls:
        seen.spend(1)
        parts = parts_of(url)
        if isinstance(parts[0], str) and "://" not in parts[0] and parts[0] and not parts[0].startswith("/"):
            url = text(("http://", *parts))  # as curl takes it
        seen.requests.append(Request(line=line, verb=verb, url=url, query=query, body=fields, kind=kind, signed=signed))


def _read(name: str, value: Value, text_in: Value | None, file: Callable[[Value], Value]) -> Value:
    """What an option for data sends: what follows `@` is a file's."""
    if name == "data-raw" or not isinstance(value, Lit) or not str(value.value).startswith("@"):
        return value
    named = str(value.value)[1:]
    held = file(Lit(named)) if named not in ("-", "/dev/stdin") else text_in if text_in is not None else UNKNOWN
    if name == "data-urlencode":
        return UNKNOWN  # all of it is one value
    if name in ("data", "data-ascii") and isinstance(held, Lit | Text):
        return text(re.sub(r"[\r\n\0]", "", part) if isinstance(part, str) else part for part in parts_of(held))
    return held


def _sent(seen: Seen, data: list[tuple[str, Value]], as_json: bool) -> tuple[Fields, Kind]:
    if not data:
        return Fields(), "none"
    fields = Fields()
    kinds: set[Kind] = set()
    for name, value in data:
        seen.spend(1 + len(fields.items) // 8)
        if name == "data-urlencode":
            parts = parts_of(value)
            first = parts[0] if isinstance(parts[0], str) else ""
            key, equals, _ = first.partition("=")
            if not equals:
                fields = Fields(fields.items, True)
            else:
                fields = fields.merged(Fields(((key, text((first[len(key) + 1 :], *parts[1:]))),)))
            kinds.add("form")
            continue
        found, kind = http.of_written(value)
        fields = fields.merged(found)
        kinds.add("json" if name == "json" or (as_json and kind == "any") else kind)
    if len(kinds) != 1:
        return Fields(fields.items, True), "any"
    kind = kinds.pop()
    return (Fields(more=True) if kind == "any" else _opened(fields)), kind


def _opened(fields: Fields) -> Fields:
    """Values that aren't whole are unknown."""
    return Fields(tuple((name, UNKNOWN if isinstance(value, Text) else value) for name, value in fields.items),
                  fields.more)  # fmt: skip


def wget(seen: Seen, line: int, args: list[Value]) -> None:
    """One wget command."""
    verb: Value | None = None
    fields, kind = Fields(), _none()
    urls: list[Value] = []
    skip = False
    for place, arg in enumerate(args):
        parts = parts_of(arg)
        first = parts[0] if isinstance(parts[0], str) else ""
        name, equals, _ = first.partition("=")
        if skip:
            skip = False
        elif name in ("--method", "--post-data", "--body-data") and equals:
            value = text((first[len(name) + 1 :], *parts[1:]))
            if name == "--method":
                verb = value
            else:
                fields, kind = http.of_written(value)
                verb = verb or Lit("POST")
        elif name in ("--post-file", "--body-file"):
            fields, kind = Fields(more=True), "any"
            verb = verb or Lit("POST")
        elif first in ("-O", "-o", "-P", "-U", "-t", "-T", "--output-document", "--header", "--user-agent"):
            skip = True
        elif not first.startswith("-") and place >= 0:
            urls.append(arg)
    for url in urls:
        seen.spend(1)
        seen.requests.append(Request(line=line, verb=verb or Lit("GET"), url=url, body=fields, kind=kind))


def _none() -> Kind:
    return "none"


def gh(seen: Seen, line: int, args: list[Value], text_in: Value | None) -> None:
    """`gh api PATH`: GitHub's own command line."""
    if not args or args[0] != Lit("api"):
        seen.note(f"Line {line}: of gh's commands only `gh api` is read.")
        return
    verb: Value | None = None
    path: Value | None = None
    fields = Fields()
    sent = False
    pages = any(arg in (Lit("--paginate"), Lit("--paginate=true")) for arg in args)
    place = 1
    while place < len(args):
        arg = args[place]
        first = str(arg.value) if isinstance(arg, Lit) else ""
        place += 1
        following = args[place] if place < len(args) else UNKNOWN
        if first in ("-X", "--method"):
            verb = following
            place += 1
        elif first.startswith(("-X", "--method=")):
            verb = Lit(first.removeprefix("--method=").removeprefix("-X"))
        elif first in ("-f", "-F", "--field", "--raw-field"):
            parts = parts_of(following)
            key, _, value = (parts[0] if isinstance(parts[0], str) else "").partition("=")
            known = text((value, *parts[1:]))
            plainly = isinstance(known, Lit) and first in ("-f", "--raw-field") and "[" not in key
            fields = fields.merged(Fields(((key.partition("[")[0], known if plainly else UNKNOWN),)))
            sent = True
            place += 1
        elif first in ("--input", "-H", "--header", "-q", "--jq", "-t", "--template", "--cache", "-p", "--preview"):
            if first == "--input":
                fields, sent = Fields(fields.items, True), True
            place += 1
        elif not first.startswith("-") and path is None:
            path = arg
    if path is None:
        return
    parts = parts_of(path)
    if isinstance(parts[0], str) and "://" not in parts[0]:
        path = text(("https://api.github.com/", parts[0].lstrip("/"), *parts[1:]))
    verb = verb or Lit("POST" if sent else "GET")
    if isinstance(verb, Lit) and str(verb.value).upper() == "GET":
        if pages:
            asked = "".join(part for part in parts_of(path) if isinstance(part, str)).partition("?")[2]
            size = UNKNOWN if asked and not isinstance(path, Lit) else Lit(100)  # gh's own, unless it is said
            own = Fields() if re.search(r"(?:\A|&)per_page=", asked) else Fields((("per_page", size),))
            fields = own.merged(fields).merged(Fields((("page", UNKNOWN),)))  # the first has none
        seen.requests.append(Request(line=line, verb=verb, url=path, query=fields))
    else:
        seen.requests.append(Request(line=line, verb=verb, url=path, body=fields, kind="json" if sent else "none"))


def httpie(seen: Seen, line: int, command: str, args: list[Value]) -> None:
    """`http [METHOD] URL [name=value …]`."""
    words = [arg for arg in args if not str(parts_of(arg)[0] or "").startswith("-")]
    verb: Value | None = None
    if words and isinstance(words[0], Lit) and str(words[0].value).isupper() and str(words[0].value).isalpha():
        verb = words.pop(0)
    if not words:
        return
    url = words.pop(0)
    fields, query = Fields(), Fields()
    for word in words:
        parts = parts_of(word)
        first = parts[0] if isinstance(parts[0], str) else ""
        for mark in ("==", ":=", "="):
            key, found, value = first.partition(mark)
            if found:
                known: Value = text((value, *parts[1:]))
                known = known if isinstance(known, Lit) and mark != ":=" else UNKNOWN
                if mark == "==":
                    query = query.merged(Fields(((key, known),)))
                else:
                    fields = fields.merged(Fields(((key, known),)))
                break
    parts = parts_of(url)
    if isinstance(parts[0], str) and "://" not in parts[0]:
        url = text((f"{'https' if command == 'https' else 'http'}://", *parts))
    form = any(arg in (Lit("-f"), Lit("--form")) for arg in args)
    kind: Kind = "none" if not fields.items else "form" if form else "json"
    seen.requests.append(
        Request(line=line, verb=verb or Lit("POST" if fields.items else "GET"), url=url, query=query, body=fields,
                kind=kind)
    )  # fmt: skip
