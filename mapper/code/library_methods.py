"""Libraries known by tables, made from their own source (`tools.library_tables`): PyGithub, openai, anthropic and
notion-client; python-gitlab's is in `gitlab_objects`.

An object of such a library is a `Thing` that knows its class and, as far as it can be known, its own address: what its
functions ask for is below that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from mapper.code import gitlab_objects, jira_client, service_libraries
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
from mapper.code.library_table import table
from mapper.code.sent_requests import Request

if TYPE_CHECKING:
    from mapper.code.interpreter import Following

Path = tuple[Value, ...]  # an address below the API's base, segment by segment

_SLOT = re.compile(r"\{[^{}]*\}")
_GITHUB = "https://api.github.com"
_OPENAI = "https://api.openai.com/v1"
_ANTHROPIC = "https://api.anthropic.com"
_NOTION = "https://api.notion.com/v1"
_GITHUB_MADE = frozenset({"github.Github", "github.MainClass.Github"})
_OPENAI_MADE = frozenset({"openai.OpenAI", "openai.AsyncOpenAI", "openai.Client", "openai.AsyncClient"})
_AZURE_MADE = frozenset({"openai.AzureOpenAI", "openai.AsyncAzureOpenAI"})
_ANTHROPIC_MADE = frozenset({f"anthropic.{name}" for name in ("Anthropic", "AsyncAnthropic", "Client", "AsyncClient")})
_NOTION_MADE = frozenset({"notion_client.Client", "notion_client.AsyncClient"})
# What isn't sent, by the library.
_OWN = {
    "openai": frozenset({"extra_headers", "extra_query", "extra_body", "timeout"}),
    "anthropic": frozenset(
        {"betas", "extra_headers", "extra_query", "extra_body", "timeout", "user_profile_id", "workspace_id"}
    ),
    "notion_client": frozenset({"auth"}),
}
_ALIKE = frozenset({"openai", "anthropic"})  # made by the same generator
# What Azure has below the model that is asked.
_DEPLOYED = frozenset(
    {
        "/completions", "/chat/completions", "/embeddings", "/audio/transcriptions", "/audio/translations",
        "/audio/speech", "/images/generations", "/images/edits",
    }
)  # fmt: skip
# What GitHub's lists leave out of their objects.
_LEFT_OUT = {
    "Issue": frozenset({"pull_request", "closed_by"}),
    "PullRequest": frozenset(
        {
            "additions", "changed_files", "comments", "commits", "deletions", "maintainer_can_modify", "mergeable",
            "mergeable_state", "merged", "merged_by", "rebaseable", "review_comments",
        }
    ),
    "Commit": frozenset({"files", "stats"}),
    "Repository": frozenset({"network_count", "organization", "parent", "source", "subscribers_count"}),
}  # fmt: skip
_PASSING = frozenset({"with_raw_response", "with_streaming_response"})
_MODEL = re.compile(r"\w[\w.\-]{0,100}")
_MOST_OF_A_PATH = 30


@cache
def octokit_routes() -> Mapping[str, str]:
    """What octokit's functions ask for, by their names (`issues.create`), as their method and address."""
    routes: Mapping[str, str] = table("octokit")
    return routes


@cache
def slack_names(how: str) -> frozenset[str]:
    """The names of slack_sdk's functions that send `json`, a form as `data`, or ask by `get`."""
    return frozenset(table("slack_sdk")[how])


def made(reader: Following, name: str, args: Sequence[Value], given: Fields) -> Value | None:
    """What a call of something imported gives, where it is of these libraries."""
    if name in _GITHUB_MADE:
        base = given.get("base_url") or (args[1] if len(args) > 1 and isinstance(args[1], Lit) else Lit(_GITHUB))
        return _github_thing(base, "Github", ())
    if name in _OPENAI_MADE:
        base = given.get("base_url") or Lit(_OPENAI)
        return _chained("openai", Lit(_OPENAI) if base == Lit(None) else base)
    if name in _AZURE_MADE:
        return _azure(given)
    if name in _ANTHROPIC_MADE:
        base = given.get("base_url") or Lit(_ANTHROPIC)
        return _chained("anthropic", Lit(_ANTHROPIC) if base == Lit(None) else base)
    if name.startswith("openai.") and name.removeprefix("openai.") in table("openai"):
        return _chain_called(reader, _chained("openai", Lit(_OPENAI)), name.removeprefix("openai."), args, given)
    if name in _NOTION_MADE:  # with options of another kind its address isn't known
        return _chained("notion_client", Lit(_NOTION) if not args and given.get("base_url") is None else UNKNOWN)
    client = gitlab_objects.made(name, args, given)
    client = client if client is not None else jira_client.made(reader, name, args, given)
    return client if client is not None else service_libraries.made(reader, name, args, given)


def attribute(owner: Thing, name: str) -> Value | None:
    """An attribute of an object; None for what is only a function."""
    if owner["lib"] in _OWN:
        chain = ".".join((*owner["chain"], name))
        if name in _PASSING and owner["lib"] in _ALIKE:
            return owner
        if any(known.startswith(f"{chain}.") for known in table(owner["lib"])):
            return owner.but(chain=(*owner["chain"], name))
        return None
    if owner["lib"] == "gitlab":
        return gitlab_objects.attribute(owner, name)
    if owner["lib"] == "jira":
        return jira_client.attribute(owner, name)
    if owner["lib"] != "github":
        return service_libraries.attribute(owner, name)
    found = _of(owner["cls"], "attributes").get(name)
    return _github_thing(owner["base"], found, None) if found is not None else None


def assigned(owner: Thing, name: str, value: Value) -> Value:
    """The object after `owner.name = value`."""
    return gitlab_objects.assigned(owner, name, value) if owner["lib"] == "gitlab" else owner


def places(owner: Thing, name: str) -> int:
    """How many parts of its address a function takes."""
    found = table(owner["lib"]).get(".".join((*owner["chain"], name)))
    return len(_SLOT.findall(found[1])) if found is not None else 0


def called(reader: Following, owner: Thing, name: str, args: list[Value], given: Fields) -> Value:
    """A function of an object."""
    if owner["lib"] in _ALIKE:
        if name in ("with_options", "copy"):
            base = given.get("base_url")
            return owner if base is None else owner.but(base=base)
        return _chain_called(reader, owner, ".".join((*owner["chain"], name)), args, given)
    if owner["lib"] in _OWN:
        return _chain_called(reader, owner, ".".join((*owner["chain"], name)), args, given)
    if owner["lib"] == "gitlab":
        return gitlab_objects.called(reader, owner, name, args, given)
    if owner["lib"] == "jira":
        return jira_client.called(reader, owner, name, args, given)
    if owner["lib"] != "github":
        return service_libraries.called(reader, owner, name, args, given)
    return _github(reader, owner, name, args, given)


# ---- libraries whose functions are found by their names below a client


def _chained(lib: str, base: Value) -> Thing:
    return Thing("table", (("lib", lib), ("chain", ()), ("base", base)))


def _azure(given: Fields) -> Thing:
    """A client of OpenAI's resources at Azure."""
    endpoint, deployment = given.get("azure_endpoint") or UNKNOWN, given.get("azure_deployment")
    elsewhere = given.more or given.get("base_url") is not None or deployment is not None
    base = UNKNOWN if elsewhere else joined(text((*_stripped(one), "/openai")) for one in choices(endpoint))
    return _chained("openai", base).but(version=given.get("api_version") or UNKNOWN)


def _chain_called(reader: Following, owner: Thing, chain: str, args: Sequence[Value], given: Fields) -> Value:
    functions = table(owner["lib"])
    found = functions.get(chain)
    if found is None and owner["lib"] in _ALIKE:
        stream = chain.removesuffix(".stream").removesuffix(".parse")
        found = functions.get(f"{stream}.create") if stream != chain else None
    if found is None:
        return UNKNOWN
    verb, path = found
    named = dict(given.items)
    extra = named.get("extra_body")
    own = _OWN[owner["lib"]]
    sent = Fields.of({name: value for name, value in named.items() if name not in own}, given.more)
    version: Value | None = owner["version"]
    where: list[Any] = ["/"]
    if version is not None and path in _DEPLOYED:
        _, model = plain(sent.get("model") or UNKNOWN)
        where += ["deployments/", model if isinstance(model, str) and _MODEL.fullmatch(model) else None, "/"]
    left = list(args)  # what is given by place is in the address, in its order
    for part in re.split(r"(\{[^{}]*\})", path.strip("/")):
        if part.startswith("{"):
            absent = left.pop(0) if left and sent.get(part[1:-1]) is None else UNKNOWN
            where.extend(parts_of(sent.get(part[1:-1]) or absent))
            sent = sent.without(part[1:-1])
        else:
            where.append(part)
    if left or chain not in functions or chain.endswith(".parse"):  # a helper's own function adds to what it is given
        sent = Fields(sent.without("text_format", "output_format").items, True)
    if isinstance(extra, Fields):
        sent = sent.merged(extra)
    files_in_it = any(sent.get(name) is not None for name in ("file", "image", "mask"))
    for (base,) in each(owner["base"]):
        asks = verb in ("GET", "DELETE")
        reader.seen.requests.append(
            Request(
                line=reader.line,
                verb=Lit(verb),
                url=text((*_stripped(base), *where)),
                query=(sent if asks else Fields()).merged(
                    Fields((("api-version", version),)) if version is not None else Fields()
                ),
                body=Fields() if asks else Fields(more=True) if files_in_it else sent,
                kind="none" if asks else "any" if files_in_it else "json",
                sdk=True,
            )
        )
    return UNKNOWN


# ---- PyGithub


def _github_thing(base: Value, name: str, path: Path | None) -> Thing:
    return Thing("table", (("lib", "github"), ("cls", name), ("path", path), ("base", base)))


def _of(name: str, what: str, depth: int = 0) -> Mapping[str, Any]:
    """What a class has, and those that it comes from."""
    entry = table("github").get(name)
    if entry is None:
        return {}
    made: dict[str, Any] = {}
    for base in entry["bases"] if depth < 5 else ():
        made.update(_of(base, what, depth + 1))
    return {**made, **entry[what]}


def _github(reader: Following, owner: Thing, name: str, args: list[Value], given: Fields) -> Value:
    entry = _of(owner["cls"], "methods").get(name)
    if entry is None:
        return UNKNOWN
    arguments: list[str] = entry["arguments"]
    asked_later = given.get("lazy") == Lit(True)
    named = {**dict(zip(arguments, args, strict=False)), **dict(given.items)}
    named = {key: value for key, value in named.items() if "NotSet" not in str(getattr(value, "name", ""))}
    if len(args) > len(arguments):
        given = Fields(given.items, True)  # a function that takes any number
    outcomes: list[Value] = []
    for combination in each(*(named[key] for key in named)):
        one = dict(zip(named, combination, strict=True))
        fitting = [
            (place, verb, path, used)
            for place, (verb, template) in enumerate(entry["calls"])
            if (filled := _filled(template, owner["path"], arguments, one, entry["sent"])) is not None
            for path, used in (filled,)
        ]
        if len(fitting) > 1:  # the one that uses what is given
            most = max(len(used) for _, _, _, used in fitting)
            fitting = [each_one for each_one in fitting if len(each_one[3]) == most]
        if len({verb for _, verb, _, _ in fitting}) == 1 and all(not isinstance(value, Lit) for value in combination):
            fitting = fitting[:1]  # the first is the usual one
        if len(fitting) != 1:
            reader.seen.unread.append((reader.line, f"PyGithub's {owner['cls']}.{name}, which could ask for several"))
            continue
        place, verb, path, used = fitting[0]
        if not asked_later:
            paged = Fields((("page", UNKNOWN),) if entry.get("many") and verb == "GET" else ())  # the first has none
            _github_sent(reader, owner["base"], verb, path, entry["sent"], one, used, Fields(paged.items, given.more))
        outcomes.append(_given(owner["base"], entry, place, verb, path))
    return joined(outcomes) if outcomes else UNKNOWN


def looked_at(reader: Following, owner: Thing, name: str) -> None:
    """An attribute is read: PyGithub asks for the whole of an object of a list that came without it."""
    if owner["lib"] == "github" and owner["listed"] and name in _LEFT_OUT.get(owner["cls"], ()):
        _github_sent(reader, owner["base"], "GET", owner["path"], {}, {}, (), Fields())


def _filled(
    template: str, own: Path | None, arguments: Sequence[str], named: Mapping[str, Value], sent: Mapping[str, Any]
) -> tuple[Path, tuple[str, ...]] | None:
    """An address from its template, the object's own address and the arguments, and which arguments are in it; None
    where more arguments than are there would have to be."""
    segments = [one for one in template.strip("/").split("/") if one]
    made: list[Value] = []
    aligned = own is not None
    for place, segment in enumerate(segments):
        slot = _SLOT.fullmatch(segment)
        if aligned and own is not None and place < len(own):
            if slot or own[place] == Lit(segment):
                made.append(own[place])
                continue
            aligned = False
        made.append(Lit(segment) if not slot else Thing("slot", (("name", segment.strip("{}")),)))
    missing = [place for place, value in enumerate(made) if isinstance(value, Thing)]
    free = [name for name in arguments if name in named and name not in sent]
    used: list[str] = []
    for name in [one for one in free if one in {made[place]["name"] for place in missing}]:  # type: ignore[index]
        place = next(one for one in missing if made[one]["name"] == name)  # type: ignore[index]
        made[place] = named[name]
        missing.remove(place)
        used.append(name)
    rest = [name for name in free if name not in used]
    while missing and rest:
        name = rest.pop(0)
        value = named[name]
        used.append(name)
        pieces = _pieces(value, len(missing), alone=not rest)
        if pieces is None:
            return None
        for piece in pieces:
            made[missing.pop(0)] = piece
    if missing and own is not None and not own:
        return None
    return tuple(UNKNOWN if isinstance(value, Thing) else value for value in made[:_MOST_OF_A_PATH]), tuple(used)


def _pieces(value: Value, wanted: int, alone: bool) -> list[Value] | None:
    """What one argument is in a path: `owner/repo` is two segments, an object its own last ones; None where it can't be
    that."""
    if isinstance(value, Thing) and value["path"]:
        return list(value["path"][-wanted:])
    known, written = plain(value)
    if known and isinstance(written, str) and wanted > 1 and written.count("/") == wanted - 1:
        return [Lit(part) for part in written.split("/")]
    if known and isinstance(written, str) and "/" in written and wanted == 1:
        return None
    if known and isinstance(written, int) and wanted > 1 and alone:
        return None
    if known and isinstance(written, str) and wanted > 1 and alone:
        return [*[UNKNOWN] * (wanted - 1), Lit(written)]  # the last of them: the others are whose it is
    if known and isinstance(written, str | int):
        return [Lit(str(written))]
    return [UNKNOWN] * wanted if wanted > 1 and alone else [value]


def _github_sent(
    reader: Following, base: Value, verb: str, path: Path, sent: Mapping[str, Any], named: Mapping[str, Value],
    used: Sequence[str], fields: Fields,
) -> None:  # fmt: skip
    for name, value in named.items():
        if name in used or name == "lazy":
            continue
        key, plainly = sent.get(name, (name, False))
        ok, _ = plain(value)
        fields = fields.merged(Fields(((key, value if plainly and ok else UNKNOWN),)))
    where: list[Any] = []
    for segment in path:
        where.extend(("/", *parts_of(segment)))
    asks = verb in ("GET", "DELETE")
    for (one,) in each(base):
        reader.seen.requests.append(
            Request(
                line=reader.line,
                verb=Lit(verb),
                url=text((*_stripped(one), *where)),
                query=fields if asks else Fields(),
                body=Fields() if asks else fields,
                kind="none" if asks else "json",
                sdk=True,
            )
        )


def _given(base: Value, entry: Mapping[str, Any], place: int, verb: str, path: Path) -> Value:
    gives = entry.get("gives", ())
    if not gives:
        return UNKNOWN
    name = gives[place] if len(gives) == len(entry["calls"]) else gives[0]
    if entry.get("many"):
        return Stream(_github_thing(base, name, (*path, UNKNOWN)).but(listed=True))
    return _github_thing(base, name, (*path, UNKNOWN) if verb == "POST" else path)


def _stripped(base: Value) -> tuple[Any, ...]:
    parts = [*parts_of(base)]
    if isinstance(parts[-1], str):
        parts[-1] = parts[-1].rstrip("/")
    return tuple(parts)
