"""`goex rules`: what runs without asking, what is asked for each time, and what never runs.

The files in the person's folder are drafts: `apply` alone puts them in force, after showing what it changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goex.cli.help_text import App
from goex.cli.output import Json, Output, local, shown
from goex.cli.question_text import Line, folded
from policies.display_text import counted, escape_name
from policies.errors import Denied, ExitStatus, InvalidInput
from policies.grants import ANONYMOUS, PERSON

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import rules_pb2 as pb

app = App(no_args_is_help=False, help="What runs without asking, what is asked for each time, what never runs.")

_EFFECTS = {"permit": "runs without asking", "ask": "asked for each time", "forbid": "never runs"}
# A look at the rules compares what they are for with the imported catalog, which may have tens of thousands of methods.
_SECONDS = 600.0
_SLOW = "Comparing the imported catalog with what the rules were applied for; a large one takes up to a minute."
File = Annotated[Path | None, typer.Argument(metavar="[FILE]", show_default=False, help="Instead of your own files.")]


@app.callback(invoke_without_command=True)
def in_force(context: typer.Context, as_json: Json = False) -> None:
    """The rules in force."""
    if context.invoked_subcommand is not None:
        return
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import rules_pb2 as pb

    reply = call(out, "Rules/InForce", pb.InForceRequest(), pb.InForceReply, seconds=_SECONDS, slow=_SLOW)
    if as_json:
        return
    for line in _warnings(reply):
        out.progress(line)
    if reply.rules:
        out.table(
            ("rule", "effect", "where"),
            [(rule.name, _EFFECTS.get(rule.effect, rule.effect), f"{rule.file}:{rule.line}") for rule in reply.rules],
        )
    if not reply.trouble:
        since = f"In force since {local(reply.applied)}, by {reply.by}." if reply.applied else "These come with GoEx."
        out.say(shown(since))
    for one in reply.confined:
        out.say(shown(f"Confined: {one.what} {one.to}"))


def notes(client: Client, out: Output) -> tuple[str, ...]:
    """What the person should know of the rules, for whoever says how the daemon is."""
    return tuple(_warnings(_in_force(client, out)))


def _warnings(reply: pb.InForceReply) -> Iterator[str]:
    """What the person should know before the list: for stderr, so that it can't be taken for a rule."""
    if reply.trouble:
        yield f"{reply.trouble} Nothing is permitted by a rule, and everything is asked for."
        yield "Look at your files, then put them in force again: goex rules apply"
    elif reply.drafts_trouble:
        yield f"Your files in {reply.folder} can't be put in force: {reply.drafts_trouble}"
    elif reply.drafts:
        many = counted(len(reply.drafts), "rule")
        yield f"Your files in {reply.folder} differ from what is in force in {many}: goex rules diff, goex rules apply"
    if reply.catalog:
        yield reply.catalog
    for one in reply.resting:
        yield f"{one.agent} rests until {local(one.until)}, after many denials: goex rules wake {one.agent}"


@app.command("check")
def check(file: File = None, as_json: Json = False) -> None:
    """Look for mistakes: syntax, names, types, rules that can never apply. Exit status 2 where there is an error."""
    out = Output(as_json)
    from goex.cli.connect import connect

    with connect(out) as client:
        reply = _check(client, _files(file), out)
    out.message(reply)
    _findings(out, reply)
    wrong = sum(one.error for one in reply.findings)
    if not as_json:
        out.say(f"{counted(reply.rules, 'rule')}, {counted(wrong, 'error') if wrong else 'no errors'}.")
    raise typer.Exit(int(ExitStatus.USAGE if wrong else ExitStatus.OK))


@app.command("diff")
def diff(as_json: Json = False) -> None:
    """What `goex rules apply` would change."""
    out = Output(as_json)
    from goex.cli.connect import connect

    with connect(out) as client:
        _in_force(client, out)  # refused while that isn't known
        reply = _check(client, _files(None), out)
    _findings(out, reply)
    if any(one.error for one in reply.findings):
        raise InvalidInput("These files can't be put in force: a rule has an error.", next_step="goex rules check")
    out.message(reply)
    if not as_json:
        _changes(out, reply)


@app.command("apply")
def apply(as_json: Json = False) -> None:
    """Put your files in force, after showing what that changes. Needs your approval passphrase."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.daemon_calls import call_with_presence
    from goex.cli.prompt import Terminal
    from goex.cli.vault_state import require_open
    from goex.rpc import rules_pb2 as pb

    files = _files(None)
    with connect(out) as client:
        require_open(client, out)
        checked = _check(client, files, out)
        _findings(out, checked)
        wrong = next((one for one in checked.findings if one.error), None)
        if wrong is not None:
            raise InvalidInput("Nothing was put in force: a rule has an error.", next_step="Mend it: goex rules check")
        if checked.catalog:
            out.progress(checked.catalog)
            out.progress("This puts them in force for what it says now.")
        terminal = Terminal.controlling()
        if terminal is None or not checked.changes:
            _changes(out, checked)
            if not checked.changes and not checked.catalog:
                out.progress("Comments, and the order and names of your files, are put in force too.")
        elif not terminal.agrees_to(_difference(checked), "Put this in force? [y/N] "):
            raise Denied("Nothing was put in force.", next_step="Answer y to put it in force.")
        request = pb.ApplyRulesRequest(files=files, compared_with=checked.hash)
        reply = call_with_presence(client, "Rules/ApplyRules", request, pb.InForceReply, terminal, seconds=_SECONDS)
    out.message(reply)
    if not as_json:
        out.say(f"In force: {counted(len(reply.rules), 'rule')}.")


@app.command("suggest")
def suggest(
    write: Annotated[bool, typer.Option("--write", help="Add them to your drafts, as suggested.cedar.")] = False,
    as_json: Json = False,
) -> None:
    """Rules that would have answered what you were asked before. Puts nothing in force: goex rules apply does."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import rules_pb2 as pb

    reply = call(out, "Rules/SuggestRules", pb.SuggestRulesRequest(), pb.SuggestRulesReply)
    if not as_json:
        for one in reply.rules:
            _suggested(out, one)
        late = f", and {reply.unanswered} that you didn't answer" if reply.unanswered else ""
        asked = counted(reply.asked, "question")
        out.say(
            f"These rules would have answered {reply.answered} of {asked}{late}; none that you denied."
            if reply.rules
            else f"No rule is suggested: of {asked} too few are alike."
        )
    if write and reply.rules:
        file = _add_drafts(reply)
        out.progress(f"Added to your draft {file.name}. Look at it, then: goex rules diff, goex rules apply")


@app.command("defaults")
def defaults(as_json: Json = False) -> None:
    """Print the rules that come with GoEx; a default.cedar of your own, once applied, takes their place."""
    out = Output(as_json)
    from policies.rules.book import DEFAULT_FILE, default_text

    out.json({"name": DEFAULT_FILE, "text": default_text()})
    if not as_json:
        out.say(default_text().rstrip("\n"))


@app.command("test")
def test(
    table: Annotated[Path, typer.Argument(metavar="FILE", help="Cases, in TOML or YAML.")],
    drafts: Annotated[bool, typer.Option("--drafts", help="Try your files instead of what is in force.")] = False,
    as_json: Json = False,
) -> None:
    """Decide a table of cases, and say where the decision isn't the one expected. Exit status 1 where one isn't."""
    out = Output(as_json)
    cases = _table(table)
    from goex.cli.connect import connect
    from goex.cli.daemon_calls import call
    from goex.rpc import rules_pb2 as pb

    request = pb.TestRulesRequest(cases_json=cases, drafts=drafts, files=_files(None) if drafts else ())
    reply = call(out, "Rules/TestRules", request, pb.TestRulesReply, seconds=_SECONDS)
    if not drafts:
        with connect(out) as client:
            if catalog := _in_force(client, out).catalog:
                out.progress("Cases are decided as if the rules were applied for the imported catalog of now.")
                out.progress(catalog)
    if not as_json:
        failed = [one for one in reply.results if not one.good]
        for one in failed[:1]:
            out.say(shown(f"{one.name}: expected {_said(one.expected, [one.expected_rule])}, but it is"), "bold red")
            out.block(f"{_said(one.came, one.rules)}. {one.reason}")
        for one in failed[1:]:
            out.say(shown(f"{one.name}: expected {one.expected}, but it is {_said(one.came, one.rules)}"))
        out.say(f"As expected: {len(reply.results) - len(failed)} of {counted(len(reply.results), 'case')}.")
    raise typer.Exit(int(ExitStatus.FAILED if reply.failed else ExitStatus.OK))


@app.command("explain")
def explain(
    action_id: Annotated[str, typer.Argument(metavar="[ACTION_ID]", show_default=False)] = "",
    call: Annotated[str, typer.Option(metavar="SERVICE.METHOD", help="A call that nobody made.")] = "",
    arg: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="An argument of it.")] = None,
    agent: Annotated[str, typer.Option(metavar="NAME", help="Who would ask.")] = "person",
    account: Annotated[str, typer.Option(metavar="NAME")] = "",
    as_json: Json = False,
) -> None:
    """Which rule says what, which grant would cover it, and what would be asked."""
    out = Output(as_json)
    if bool(action_id) == bool(call):
        raise InvalidInput("Name an action, or a call with --call.", next_step="goex log lists actions.")
    from goex.cli import daemon_calls
    from goex.cli.connect import connect
    from goex.rpc import goex_pb2
    from goex.rpc import rules_pb2 as pb

    case: dict[str, Any] = {"call": call, "agent": agent, "arguments": _arguments(arg or [])}
    if account:
        case["account"] = account
    request = pb.ExplainRulesRequest(action_id=action_id, case_json="" if action_id else json.dumps(case))
    reply = daemon_calls.call(out, "Rules/ExplainRules", request, pb.ExplainRulesReply)
    if as_json:
        return
    for one in reply.calls:
        out.say(shown(f"{one.what} ({one.kind}, by {reply.agent})"), "bold")
        for verdict in one.verdicts:
            problem = f": {verdict.problem}" if verdict.problem else ""
            out.block(f"{verdict.rule}  {_EFFECTS.get(verdict.effect, verdict.effect)}{problem}", style="")
        if not one.verdicts:
            out.block("no rule says anything of it, so grants decide")
    out.fields(
        (
            ("now", _said(reply.decision, reply.rules)),
            ("because", reply.reason),
            ("grants", ", ".join(reply.grants)),
            ("asked for", ", ".join(reply.asked)),
            ("then", reply.then),
        )
    )
    if not action_id and agent not in (PERSON, ANONYMOUS):
        with connect(out) as client:
            known = client.call("Person/ListAgents", goex_pb2.ListAgentsRequest(), goex_pb2.ListAgentsReply)
        if agent not in {one.name for one in known.agents}:
            out.progress(shown(f"No agent is named {agent} yet. Those that are: goex agents list"))


@app.command("wake")
def wake(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Its name.")],
    as_json: Json = False,
) -> None:
    """Let an agent go on that rests after many denials. Needs your approval passphrase."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.daemon_calls import call_with_presence
    from goex.rpc import rules_pb2 as pb

    with connect(out) as client:
        in_force = _in_force(client, out)
        reply = pb.WakeAgentReply()
        if agent in {one.agent for one in in_force.resting}:
            request = pb.WakeAgentRequest(agent=agent)
            reply = call_with_presence(client, "Rules/WakeAgent", request, pb.WakeAgentReply)
    out.message(reply)
    if not as_json:
        out.say(shown(f"{agent} may ask again." if reply.rested else f"{agent} doesn't rest."))


def _suggested(out: Output, one: pb.SuggestedRule) -> None:
    """One suggestion: what it is for, what it opens, and its text."""
    late = f", and {one.unanswered} that you didn't answer" if one.unanswered else ""
    opens = [f"1 of {counted(one.methods, 'method')} of {one.method.partition('.')[0]} ({one.risk})"]
    if one.free:
        free = ", ".join(map(escape_name, one.free))  # an imported document's words
        opens.append(f"{free} may be anything")
    if one.combinations:
        opens.append(f"{counted(one.combinations, 'combination')} of values that you never approved")
    out.say(shown(f"{one.name}: {one.method} as {one.account}, by {one.agent}"), "bold")
    out.fields((("answers", f"{one.answers} that you approved{late}"), ("newly opens", "; ".join(opens))))
    for line in _lines(one.text):
        out.block(line)


def _add_drafts(reply: pb.SuggestRulesReply) -> Path:
    """Add the rules that aren't there yet to the person's file of suggestions."""
    from goex.cli.connect import paths
    from policies.rules.drafts import read_file, write_draft
    from policies.rules.suggestions import FILE, added

    file = paths().rules / FILE
    before = read_file(file) if file.exists() else ""
    write_draft(file, added(before, (one.text for one in reply.rules)))
    return file


def _in_force(client: Client, out: Output) -> pb.InForceReply:
    from goex.cli.daemon_calls import said_if_long
    from goex.rpc import rules_pb2 as pb

    with said_if_long(out, _SLOW):
        return client.call("Rules/InForce", pb.InForceRequest(), pb.InForceReply, seconds=_SECONDS)


def _check(client: Client, files: list[pb.RuleFile], out: Output) -> pb.CheckRulesReply:
    from goex.cli.daemon_calls import said_if_long
    from goex.rpc import rules_pb2 as pb

    with said_if_long(out, _SLOW):
        return client.call("Rules/CheckRules", pb.CheckRulesRequest(files=files), pb.CheckRulesReply, seconds=_SECONDS)


def _files(file: Path | None) -> list[pb.RuleFile]:
    from goex.cli.connect import paths
    from goex.rpc import rules_pb2 as pb
    from policies.rules.drafts import read_file, read_folder

    texts = {file.name: read_file(file)} if file is not None else read_folder(paths().rules)
    return [pb.RuleFile(name=name, text=text) for name, text in texts.items()]


def _findings(out: Output, reply: pb.CheckRulesReply) -> None:
    if out.as_json:
        return
    for one in reply.findings:
        kind = "error" if one.error else "warning"
        out.say(shown(f"{one.file}:{one.line}:{one.column}: {kind}: {one.says}"), "bold red" if one.error else "yellow")
        if one.next_step:
            out.block(one.next_step)


def _changes(out: Output, reply: pb.CheckRulesReply) -> None:
    if out.as_json:
        return
    if not reply.changes:
        out.say("No rule differs from what is in force.")
    styles = {"added": "green", "removed": "red"}
    lines = _difference(reply)
    for line in folded(lines, out.console.width) if out.on_terminal else lines:
        out.say(line.text, styles.get(line.style, line.style))


def _difference(reply: pb.CheckRulesReply) -> Iterator[Line]:
    """The difference, rule by rule: nothing of it is cut."""
    for one in reply.changes:
        yield Line(shown(f"{one.change} {one.name}: {_EFFECTS.get(one.effect, one.effect)}"), "bold")
        for line in _lines(one.before):
            yield Line(shown(f"  - {line}"), "removed")
        for line in _lines(one.after):
            yield Line(shown(f"  + {line}"), "added")


def _lines(text: str) -> list[str]:
    """As Cedar counts them: what else Python takes for the end of one stays within it, escaped."""
    return text.replace("\r\n", "\n").split("\n") if text else []


def _table(path: Path) -> str:
    """A table of cases as JSON. Raises InvalidInput."""
    from policies.rules.drafts import read_file

    text = read_file(path)
    try:
        if path.suffix in (".yaml", ".yml"):
            import yaml

            found = yaml.safe_load(text)
        else:
            import tomllib

            found = tomllib.loads(text)
    except Exception as error:
        raise InvalidInput(
            f"{shown(str(path))} can't be read: {error}.", next_step="Write it as TOML or YAML."
        ) from error
    return json.dumps(found, default=str)


def _arguments(given: list[str]) -> dict[str, Any]:
    """NAME=VALUE; a value that is JSON is taken as that, else as text."""
    made: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise InvalidInput(f"{one[:60]!r} isn't an argument.", next_step="Write it like --arg channel=#ops")
        try:
            made[name] = json.loads(value)
        except ValueError:
            made[name] = value
    return made


def _said(decision: str, rules: Any) -> str:
    named = [rule for rule in rules if rule]
    return f"{decision} by {', '.join(named)}" if named else decision
