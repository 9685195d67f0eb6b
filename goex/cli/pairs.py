"""`goex undo-pairs`: what takes calls back, who says so, and whether it ever did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goex.cli.help_text import App
from goex.cli.output import Json, Output, local, shown
from goex.cli.question_text import Line
from policies.errors import Denied, InvalidInput

if TYPE_CHECKING:
    from goex.client import Client
    from goex.rpc import reversions_pb2 as pb

app = App(help="Undo pairs: which call undoes which, where each pair comes from, and whether it has worked.")

_SOURCES = {
    "bundled": "comes with GoEx",
    "developer": "added by you",
    "derived": "derived from the service's document",
    "model": "written by a model",
}
_STANDINGS = {
    "proven": "proven: used here, and read back",
    "unproven": "unproven",
    "failed": "failed: not used again (see: goex undo-pairs retry)",
    "unbelieved": "not believed: the record of it was altered",
}
Hash = Annotated[str, typer.Argument(metavar="HASH", help="The pair's hash, or its beginning.")]
MAX_FILE = 200_000  # bytes


@app.command("list")
def list_(
    of: Annotated[str, typer.Argument(metavar="[SERVICE[.METHOD]]", show_default=False)] = "",
    failed: Annotated[bool, typer.Option("--failed", help="Those alone that failed, and how.")] = False,
    as_json: Json = False,
) -> None:
    """The pairs of a service or a method; without one, those that were added and those that were used."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import reversions_pb2 as pb

    reply = call(out, "Reversions/ListPairs", pb.ListPairsRequest(of=of, failed=failed), pb.ListPairsReply)
    if as_json:
        return
    if reply.trouble:
        out.progress(f"{reply.trouble} Only what comes with GoEx takes anything back: goex undo-pairs restore")
    if not reply.pairs:
        which = "has failed" if failed else "was added or used yet" if not of else f"takes back {of}"
        out.say(shown(f"No pair {which}."))
        if not of:
            out.progress("See those of a service with: goex undo-pairs list SERVICE")
    else:
        out.table(
            ("pair", "call", "for", "taken back by", "source", "standing"),
            [
                (one.hash[:12], one.method, one.fits, ", ".join(one.calls), one.source, one.standing)
                for one in reply.pairs
            ],
        )
    for one in reply.pairs:
        if one.failure:
            out.say(shown(f"{one.hash[:12]} failed: {one.failure}"))
        if one.stale:
            out.say(shown(f"{one.hash[:12]} isn't used: {one.stale}"))
    if reply.strict:
        out.say(shown(f"Undo is strict for {reply.strict}: only what is proven, and reads, run."))


@app.command("show")
def show(hash: Hash, as_json: Json = False) -> None:
    """One pair in full, and every use of it."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import reversions_pb2 as pb

    reply = call(out, "Reversions/ShowPair", pb.ShowPairRequest(hash=hash), pb.ShowPairReply)
    if as_json:
        return
    for line in _lines(reply):
        out.say(line.text, line.style)
    for use in reply.uses:
        why = f": {use.why}" if use.why else ""
        out.say(shown(f"{local(use.at)}  {use.action}  {use.result}{why}"))


@app.command("add")
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One pair, or several as [[pair]], in TOML.")],
    as_json: Json = False,
) -> None:
    """Add pairs of your own, after showing them. Needs your approval passphrase."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.rpc import reversions_pb2 as pb

    text = _text(file)
    with connect(out) as client:
        request = pb.CheckPairsRequest(name=file.name, text=text)
        checked = client.call("Reversions/CheckPairs", request, pb.CheckPairsReply)
        reply = _add(checked, pb.AddPairsRequest(name=file.name, text=text), client)
    _added(out, reply)


@app.command("propose")
def propose(
    method: Annotated[str, typer.Argument(metavar="SERVICE.METHOD")],
    as_json: Json = False,
) -> None:
    """Let the model propose a way back of a call that has none; you see it, and add it or not. Needs your approval
    passphrase. It counts as a model's from then on, and isn't used again once it failed, unless you say so (retry)."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.rpc import reversions_pb2 as pb

    with connect(out) as client:
        request = pb.ProposePairRequest(method=method)
        checked = client.call("Reversions/ProposePair", request, pb.CheckPairsReply, seconds=200.0)
        proposal = checked.pairs[0].pair.hash
        reply = _add(checked, pb.AddPairsRequest(proposal=proposal), client, ask=True)
    _added(out, reply)


@app.command("remove")
def remove(hash: Hash, as_json: Json = False) -> None:
    """Remove a pair that was added. The record of its uses is kept. Needs your approval passphrase."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import reversions_pb2 as pb

    reply = call(out, "Reversions/RemovePair", pb.RemovePairRequest(hash=hash), pb.RemovePairReply, presence=True)
    if not as_json:
        out.say(shown(f"Removed: {reply.method} isn't taken back by it any more."))


@app.command("retry")
def retry(hash: Hash, as_json: Json = False) -> None:
    """Use a pair again that failed, once you know why. Needs your approval passphrase."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import reversions_pb2 as pb

    reply = call(out, "Reversions/RetryPair", pb.RetryPairRequest(hash=hash), pb.RetryPairReply, presence=True)
    if not as_json:
        out.say(shown(f"The undo pair {reply.hash[:12]} is used again."))


@app.command("restore")
def restore(as_json: Json = False) -> None:
    """Make the set anew from the journal, where the state database was altered. Needs your approval passphrase."""
    out = Output(as_json)
    from goex.cli.daemon_calls import call
    from goex.rpc import reversions_pb2 as pb

    request = pb.RestorePairsRequest()
    reply = call(out, "Reversions/RestorePairs", request, pb.RestorePairsReply, presence=True, seconds=600.0)
    if not as_json:
        out.say(f"Pairs and uses restored from the journal: {reply.count}.")


def _add(
    checked: pb.CheckPairsReply, request: pb.AddPairsRequest, client: Client, *, ask: bool = False
) -> pb.AddPairsReply:
    """Show what would be added on the terminal, and add it with presence. A model's needs a yes of its own."""
    from goex.cli.daemon_calls import call_with_presence
    from goex.cli.prompt import Terminal
    from goex.rpc import reversions_pb2 as pb

    terminal = Terminal.controlling()
    if terminal is None and ask:
        raise Denied("What a model proposes is added on a terminal alone.", next_step="Run it where you can answer.")
    if terminal is not None:
        lines = (line for one in checked.pairs for line in _lines(one))
        if not terminal.agrees_to(lines, "Add this? [y/N] "):
            raise Denied("Nothing was added.", next_step="Answer y to add it.")
    return call_with_presence(client, "Reversions/AddPairs", request, pb.AddPairsReply, terminal)


def _added(out: Output, reply: pb.AddPairsReply) -> None:
    out.message(reply)
    if not out.as_json:
        for one in reply.pairs:
            out.say(shown(f"Added {one.hash[:12]}: {one.method} is taken back by {', '.join(one.calls)}."))


def _lines(reply: pb.ShowPairReply) -> Iterator[Line]:
    """A pair in full: nothing of it is cut."""
    one = reply.pair
    yield Line(shown(f"{one.method}, {one.fits}"), "bold")
    standing = _STANDINGS.get(one.standing, one.standing)
    yield Line(shown(f"  {_SOURCES.get(one.source, one.source)}; {standing}"))
    if one.added:
        yield Line(shown(f"  added {local(one.added)} by {one.by}"))
    undo = json.loads(reply.undo_json)
    for role, words in (("pre", "first reads"), ("after", "then reads"), ("guard", "compares first"),
                        ("guards", "compares first"), ("calls", "takes back by"),
                        ("verify", "reads back")):  # fmt: skip
        found = undo.get(role, [])
        for call in found if isinstance(found, list) else [found]:
            arguments = json.dumps(call["arguments"], ensure_ascii=False)
            yield Line(shown(f"  {words} {call['method']} {arguments}"))
            for expect in call.get("expect", ()):
                said = {name: value for name, value in expect.items() if name != "says"}
                yield Line(shown(f"      expects {json.dumps(said, ensure_ascii=False)}"))
    if undo.get("restores"):
        yield Line(shown(f"  writes back the old fields of its {undo['restores']} that the call wrote"))
    for scope in one.scopes:
        yield Line(shown(f"  needs {scope}"))
    if one.note:
        yield Line(shown(f"  what remains: {one.note}"))
    yield Line(shown(f"  {reply.pair.hash}"), "dim")


def _text(file: Path) -> str:
    from goex.cli.input_text import read_file

    data = read_file(file, MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise InvalidInput(f"{shown(str(file))} is larger than {MAX_FILE} bytes.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{shown(str(file))} can't be read: {error}.", next_step="Name a TOML file.") from error
