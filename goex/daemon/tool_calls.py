"""What the rules say of a tool that an agent's client would run by itself, outside of GoEx: for `goex hook`.

Rules: nothing is begun or asked, and of the disk only what is mounted where, and where links lead, is looked at: links
only for an agent that could look there itself, since verdicts tell others what GoEx's user alone may see. What
forbids a program in a folder, or wants it asked, holds for the client's own tools there, too, by whichever path a link
or a mount makes it reached; a permit holds only where its head names `Action::"tool"`, since one of GoEx's actions runs
in a container and can be taken back, and this isn't and can't. What isn't known is never permitted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import posixpath
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from goex.daemon import hook_paths
from goex.engine.breaker import resting_text
from goex.engine.core import Core, Principal
from goex.rpc import goex_pb2 as pb
from mapper.code.folder_shell import FolderShell
from mapper.code.shell_commands import THIS_MACHINE
from policies.actions import Files, Need, Plan, UndoClass
from policies.errors import GoexError, InvalidInput
from policies.grants import ANONYMOUS
from policies.jsonvalue import JsonObject
from policies.rules.book import Answer
from policies.rules.facts import TOOL, Question, Situation, by_other_spellings, entity, questions
from policies.rules.source import Effect
from policies.services import Risk
from runtimes.code.reader import Reader
from runtimes.files.location import elsewhere, mounts, written

KINDS = ("shell", "write", "read", "fetch", "other")
MOST_PATHS = 16
LONGEST_PATH = 4096
LONGEST_PROGRAM = 200_000
_DEEPEST = 100  # parts of a path that are judged; what lies deeper isn't known
_MOST_PARTS = 4000  # of all paths that are judged at once; what goes beyond isn't known
_MOST_LOOKS = 8  # of one agent at once
_MOST_HANGING = 2  # of one agent that don't end when they are killed
_ENDING = 0.5  # seconds, for one that was killed
_HOME = re.compile(r"(?<![\w/~.\\-])~(/[^\s'\"`;|&()<>]*|(?=[\s'\";|&()<>]|$))")
# What stands where an address in a command, without its quotes, names a host; None for what may take one as a bare
# word. An agent wrote the command, so each of its characters is looked at a few times at most.
_AUTHORITY = re.compile(
    r"(?:\b(?i:https?):/*|:/{2,})(\[[0-9A-Fa-f:.]{1,60}\]|[^\s/?#|;&)<>:]*(?::[^\s/?#|;&)<>:]+)*)"
    r"|(?<![\w.=-])(?i:curl|wget)(?![\w./-])(?!(?:[^\S\n]++(?:-[sSfLkIivqO]++(?!\S)|-[sSfLkIiv]*+o[^\S\n]++[^\s;|&<>]++"
    r"|(?i:https?)://[^\s;|&<>]++)){1,20}+[^\S\n]*+(?:[;|&>\n]|$))"
)
_NAMES = re.compile(r"\[[^\]]{1,60}\]|[^:@]+")  # of an authority: the host, and a user, who could pass for one
_HERE = re.compile(THIS_MACHINE)
# A part of a command, from its beginning on; one whose words are `texts`, and reach no host.
_PART = re.compile(
    r"\s*+(?P<texts>(?:git[ ](?:commit|log|grep)|gh[ ]pr[ ]create|grep|rg|echo|which|type)(?!\S))?"
    r"(?:\"\$\(cat <<'(?P<end>\w+)'\n(?:(?!(?P=end)\n)[^\n]*\n)*(?P=end)\n\s*\)\"|'[^']*'|\"[^\"$`\\]*\""
    r"|[^\s'\"$`\\#()<;&|]|[ \t])*(?:[;&|\n]+|\Z)"  # not possessive: Python 3.11.2 errs there where groups are within
)
_looking: Counter[str] = Counter()
_hanging: dict[str, list[asyncio.subprocess.Process]] = {}
_INSTEAD = (
    "GoEx can do this in a container, with undo: use the tool goex_program of the MCP server goex with"
    ' {{"language": "shell", "folders": [{folder}], "program": the same command}}. Don\'t try it by another tool.'
)


async def judged(
    core: Core, reader: Reader, request: pb.JudgeRequest, principal: Principal, *, looks: bool
) -> pb.JudgeReply:
    """The verdict on one use of a tool. Without `looks` it rests on the words of the request alone, and where a place
    leads isn't known. Raises InvalidInput; JournalLocked; Unavailable."""
    _check(request)
    core.rules.require_read()
    shell = FolderShell()
    if request.kind == "shell":
        shell = await reader.read_folder_shell(request.program, request.folder, principal.agent)
        if request.tool.lower() == "powershell":  # another language
            shell = replace(shell, within=False, names_all=False)
        if request.home != posixpath.normpath(posixpath.expanduser("~")) and (homes := _HOME.findall(request.program)):
            # It was read with the home of GoEx's user.
            theirs = tuple(f"{request.home}{each}" for each in homes[:MOST_PATHS] if request.home)
            shell = replace(shell, within=False, names_all=False, paths=(*theirs, *shell.paths))
        core.check_named(principal)  # the agent may have been removed meanwhile, and rules name it
    situation = core.rules.counts.situation(principal.agent, principal.session)
    places = await _found(request, shell, principal.agent, looks=looks)
    worked_on = {place: also for place, also in places.asked.items() if place not in places.ran}
    refused = _bounds(core, request, principal, worked_on, situation)
    if refused is not None and refused.verdict == "forbid":
        return refused
    if refused is None:  # a command that lies elsewhere is run there, and changes nothing
        ran = pb.JudgeRequest(tool=request.tool, kind="read", folder=request.folder, program=request.program)
        refused = _bounds(core, ran, principal, places.ran, situation)
    try:
        book = core.rules.book
    except GoexError as error:
        return pb.JudgeReply(verdict="ask", reason=error.message)
    own: list[Answer] = []
    goex: list[Answer] = []
    for asked in (places.asked, places.ran, places.named):
        for question, kind in _questions(core, request, principal, asked, situation):
            # By another of a folder's paths nothing is permitted, so that none has to be.
            is_own = asked is places.asked and kind == TOOL and question.needs
            (own if is_own else goex).append(book.answer(question))
            await asyncio.sleep(0)  # each takes some time, and others wait for the daemon
    for effect, verdict, text in (
        (Effect.FORBID, "forbid", "{} forbid it."),
        (Effect.ASK, "ask", "{} want each such action asked for."),
    ):
        said = [each for each in (*own, *goex) if each.effect is effect]
        if said:
            names = tuple(dict.fromkeys(name for each in said for name in each.rules))
            why = text.format("Rules of the person (" + ", ".join(names[:3]) + ")")
            return pb.JudgeReply(verdict=verdict, reason=why, rules=names)
    if refused is not None:
        return refused
    hosts = _hosts(request.program) if request.kind == "shell" and core.settings.confinement.hosts else []
    if any(core.settings.confinement.refuses_host(host) for host in hosts):
        return pb.JudgeReply(verdict="ask", reason="This may reach a host that actions aren't confined to.")
    if places.unknown and core.settings.confinement.folders:
        return pb.JudgeReply(
            verdict="ask", reason="Where a path of this leads can't be found out, and folders are confined."
        )
    is_plain = places.seen and (request.kind != "shell" or shell.names_all)
    if not is_plain and core.settings.confinement.folders:
        return pb.JudgeReply(
            verdict="ask",
            reason="Which files this command works on isn't plain from its words, and folders are confined.",
        )
    if not is_plain and core.settings.confinement.hosts:
        return pb.JudgeReply(
            verdict="ask", reason="What this command reaches isn't plain from its words, and hosts are confined."
        )
    permits = all(each.effect is Effect.PERMIT for each in own) and principal.agent != ANONYMOUS
    if permits and is_plain and not places.unknown:
        names = tuple(dict.fromkeys(name for each in own for name in each.rules))
        return pb.JudgeReply(verdict="permit", reason=f"Permitted by {', '.join(names[:3])}.", rules=names)
    # Where a rule permits what is seen of it, the client asks about the rest.
    if shell.changes and shell.within and not permits and request.folder != "/" and "files" in core.runtimes:
        return pb.JudgeReply(verdict="instead", reason=_INSTEAD.format(folder=json.dumps(request.folder)))
    return pb.JudgeReply()


@dataclass(frozen=True, slots=True)
class _Places:
    """The places of one use, each with what a plan says of where it is reached otherwise. `asked`: those that have to
    be permitted; `ran`: where the commands themselves lie, and `named`: what words name, of which both may only be
    forbidden or asked for. `unknown`: not all of them were found out; `seen`: the files are there that have to be."""

    asked: dict[str, JsonObject]
    ran: dict[str, JsonObject]
    named: dict[str, JsonObject]
    unknown: bool
    seen: bool


async def _found(request: pb.JudgeRequest, shell: FolderShell, agent: str, *, looks: bool) -> _Places:
    """The places that a use of a tool names, and where they lead, as far as that is looked at."""
    asked = (*request.paths, *shell.paths) or (request.folder,)
    if shell.paths:
        asked = (request.folder, *asked)
    words, globs, runs = (tuple(map(_shallow, each)) for each in (shell.words, shell.globs, shell.runs))
    paths = tuple(path for path in dict.fromkeys(map(_shallow, (*asked, *words))) if path not in globs)
    there = dict[str, str]()
    files = [path for group in shell.files for path in group]
    looked = await _looked((*paths, *files), agent, globs, there) if looks else {}
    home = looked.get(_shallow(request.folder), ("", False))[0]
    inside = request.folder.rstrip("/") + "/"
    guesses = [word for word in words if not f"{posixpath.normpath(word)}/".startswith(inside)]

    def stays(place: str) -> bool:
        """Whether a word is no link, and so is in its folder, if it names something at all."""
        inner = place.removeprefix(request.folder).lstrip("/")
        return looked.get(place, ("", False)) in ((place, True), (posixpath.join(home, inner), True))

    known = {*asked, *guesses}
    asked = (*asked, *(each for each in (*words, *globs, *looked) if each not in known and not stays(each)))
    unknown = any(_shallow(place) != place for place in asked)
    places = tuple(dict.fromkeys(map(_shallow, asked)))
    # What a word names in its folder is permitted as that, and may be forbidden by itself; so may what a text names
    # elsewhere, where that is there, or could be made.
    named = dict.fromkeys(word for word in words if there.get(word) and word not in places and word not in guesses)
    hidden = [guess for guess in guesses if not looked.get(guess, ("", looks))[1]]
    guessed = [guess for guess in guesses if (guess in there or guess in hidden) and guess not in places]
    for guess in guessed:
        named |= dict.fromkeys((guess, _shallow(looked.get(guess, (guess, False))[0])))
    budget = _MOST_PARTS
    within = list[str]()
    for place in (*places, *named):
        budget -= sum(each.count("/") for each in {place, looked.get(place, (place, True))[0]})
        within += [place] * (budget >= 0)
    unknown = unknown or budget < 0
    run = tuple(place for place in places if place in runs and place in within)
    rest = tuple(place for place in places if place not in run and place in within)
    also, is_more = await asyncio.to_thread(_elsewhere, rest, looked)
    ran, is_more_run = await asyncio.to_thread(_elsewhere, run, looked)
    ran = {place: said for place, said in ran.items() if place not in also}
    for place in map(written, map(posixpath.normpath, run)):
        also.setdefault(place, ran.get(place, {}))  # by its own path it has to be permitted, too
    also = also or {written(request.folder): {}}
    inner: dict[str, JsonObject] = {written(posixpath.normpath(each)): {} for each in named if each in within}
    seen = all(any(there.get(each) == "file" for each in group) for group in shell.files)
    return _Places(also, ran, inner, unknown or is_more or is_more_run, seen)


def _hosts(program: str) -> list[str]:
    """The hosts that addresses in a command name, but for this machine; "?" for one that isn't told."""
    left, at = list[str](), 0
    while at < len(program) and (part := _PART.match(program, at)) is not None:
        left.append(part[0] if part["texts"] is None else "\n")
        at = part.end()
    said = re.sub(r"['\"\\]", "", "".join((*left, program[at:])))
    found = (each[1] and re.sub(r":\d+$", "", each[1]) for each in _AUTHORITY.finditer(said))
    named = [name for each in found for name in (("?",) if each is None else _NAMES.findall(each))]
    return [name for name in dict.fromkeys(named) if not _HERE.fullmatch(name)]


def _bounds(
    core: Core, request: pb.JudgeRequest, principal: Principal, places: Mapping[str, JsonObject], situation: Situation
) -> pb.JudgeReply | None:
    """A refusal by what comes before any rule: an agent that rests, and what is confined. Reading outside of the
    confined folders is the client's to ask about."""
    agent = principal.agent
    if (until := core.rules.counts.until(agent, principal.session)) is not None:
        return pb.JudgeReply(verdict="forbid", reason=resting_text(agent, until), rules=("breaker",))
    for place, also in places.items():
        plan = _plan(request, place, also)
        refusal = core.settings.confinement.refusal(plan, agent=agent, situation=situation, catalog=core.catalog)
        if refusal:
            verdict = "ask" if request.kind == "read" else "forbid"
            return pb.JudgeReply(verdict=verdict, reason=refusal, rules=("confine",))
    if request.host and core.settings.confinement.refuses_host(request.host):
        return pb.JudgeReply(
            verdict="forbid", reason="This host isn't one of those that actions are confined to.", rules=("confine",)
        )
    return None


def _questions(
    core: Core, request: pb.JudgeRequest, principal: Principal, places: Mapping[str, JsonObject], situation: Situation
) -> Iterator[tuple[Question, str]]:
    """For each place the tool itself, and what a program of GoEx's there would be asked as."""
    undo = UndoClass.NOTHING if request.kind == "read" else UndoClass.IRREVERSIBLE
    arguments = {"tool": request.tool, "kind": request.kind}
    if request.program:
        arguments["program"] = request.program
    for place, also in places.items():
        for program in questions(
            _plan(request, place, also),
            agent=principal.agent,
            situation=situation,
            now=core.clock(),
            catalog=core.catalog,
        ):
            yield program, program.kind
            hosts = [request.host][: bool(request.host)]
            context = {**program.context, "undo": entity("Undo", undo.value), "hosts": hosts}
            tool = replace(program, kind=TOOL, arguments=arguments, context=context)
            yield from ((each, TOOL) for each in (tool, *by_other_spellings(tool)))


async def _looked(
    places: tuple[str, ...], agent: str, globs: tuple[str, ...] = (), there: dict[str, str] | None = None
) -> dict[str, tuple[str, bool]]:
    """Where these lead, and what the globs find elsewhere, and whether all of that is known: what is found out in
    time. `there` gets what is at those places where something is, or could be made."""
    found: dict[str, tuple[str, bool]] = {}
    hanging = _hanging.setdefault(agent, [])  # by all that it looks for at once
    hanging[:] = [each for each in hanging if each.returncode is None]
    if len(hanging) >= _MOST_HANGING or _looking[agent] >= _MOST_LOOKS:
        return found
    _looking[agent] += 1
    try:
        await _look(places, globs, found, {} if there is None else there, hanging)
    finally:
        _looking[agent] -= 1
    return found


async def _started() -> asyncio.subprocess.Process:
    """A process that looks. Raises OSError."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", hook_paths.__file__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"LC_ALL": "C.UTF-8"},
        cwd="/",
        start_new_session=True,
        limit=2**20,
    )  # fmt: skip


async def _look(
    places: tuple[str, ...],
    globs: tuple[str, ...],
    found: dict[str, tuple[str, bool]],
    there: dict[str, str],
    hanging: list[asyncio.subprocess.Process],
) -> None:
    """By a process that is `hanging` where it can't be ended."""
    try:
        process = await _started()
    except OSError:
        return
    assert process.stdin is not None and process.stdout is not None
    try:
        async with asyncio.timeout(hook_paths.SECONDS):
            process.stdin.write(json.dumps([places, globs]).encode())
            process.stdin.write_eof()
            async for line in process.stdout:
                place, real, known, is_there = json.loads(line)
                found[place] = real, known
                there.update({place: is_there} if is_there is not None else {})
            await process.wait()
    except (TimeoutError, ValueError, OSError):
        pass  # what wasn't said isn't known
    finally:
        if process.returncode is None:
            hanging.append(process)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ENDING):
                    await process.wait()


def _elsewhere(places: tuple[str, ...], looked: Mapping[str, tuple[str, bool]]) -> tuple[dict[str, JsonObject], bool]:
    """These places and where they lead, each with what a plan says of where it is reached otherwise; and whether
    something of that isn't known. Blocks."""
    found: dict[str, JsonObject] = {written(posixpath.normpath(place)): {} for place in places}
    unknown = False
    try:
        table = mounts()
    except OSError:
        table = {}  # in which no path is found
    for place in places:
        leads, known = looked.get(place, (posixpath.normpath(place), False))
        real = _shallow(leads)
        there = written(real)
        found.setdefault(there, {})
        unknown = unknown or not known or real != leads
        try:
            mount, paths = elsewhere(real, table, look=False)
        except OSError:
            unknown = True
            continue
        if paths:
            found[there] = {"also": [{"folder": there, "mount": mount, "paths": paths}]}
    return found, unknown


def _shallow(path: str) -> str:
    """A path, as far as it is judged: what rules cost grows faster than the square of its depth."""
    return "/".join(path.split("/", _DEEPEST + 1)[: _DEEPEST + 1])


def _plan(request: pb.JudgeRequest, place: str, also: JsonObject) -> Plan:
    risk = Risk.READ if request.kind == "read" else Risk.DELETE
    need = Need(service="files", account=place, scope=f"files.{risk.word}", risk=risk, methods=("files.run",))
    return Plan(
        action=Files(folder=place, language="shell", program=request.program),
        needs=(need,),
        undo_class=UndoClass.EXACT,
        undo_text="",
        resolved={"folder": place, **also},
        bounds={},
        catalog_hash="",
        image_id="",
        limits={},
        lines=(),
    )


def _check(request: pb.JudgeRequest) -> None:
    if request.kind not in KINDS:
        raise InvalidInput(f"A tool's kind is one of: {', '.join(KINDS)}.", next_step="Say other for what isn't known.")
    if len(request.tool) > 300 or len(request.host) > 300 or len(request.program) > LONGEST_PROGRAM:
        raise InvalidInput("The tool's name, host or program is too long.", next_step="Leave it to the client.")
    if len(request.paths) > MOST_PATHS:
        raise InvalidInput(f"At most {MOST_PATHS} paths are judged at once.", next_step="Leave it to the client.")
    for path in (request.folder, *request.paths, request.home or "/"):
        if not path.startswith("/") or len(path) > LONGEST_PATH or "\0" in path or posixpath.normpath(path) != path:
            raise InvalidInput("A path is absolute, and without `.` and `..`.", next_step="Write it out.")
