"""`goex undo-pairs`: what takes calls back, who says so, and whether it ever did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from goex.cli.help_text import App
from goex.cli.output import Json, Output, fold, local, shown
from policies.errors import Denied, InvalidInput

if TYPE_CHECKING:
    from goex.cli.prompt import Terminal
    from goex.cli.question_text import Style
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
    from goex.cli.connect import connect
    from goex.rpc import reversions_pb2 as pb

    with connect(out) as client:
        reply = client.call("Reversions/ListPairs", pb.ListPairsRequest(of=of, failed=failed), pb.ListPairsReply)
    out.message(reply)
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
    from goex.cli.connect import connect
    from goex.rpc import reversions_pb2 as pb

    with connect(out) as client:
        reply = client.call("Reversions/ShowPair", pb.ShowPairRequest(hash=hash), pb.ShowPairReply)
    out.message(reply)
    if as_json:
        return
    for text, style in _lines(reply):
        out.say(text, style)
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
    from goex.cli.connect import connect
    from goex.cli.prompt import with_presence
    from goex.rpc import reversions_pb2 as pb

    with connect(out) as client:
        reply = with_presence(
            lambda passphrase: client.call(
                "Reversions/RemovePair", pb.RemovePairRequest(hash=hash, passphrase=passphrase), pb.RemovePairReply
            )
        )
    out.message(reply)
    if not as_json:
        out.say(shown(f"Removed: {reply.method} isn't taken back by it any more."))


@app.command("retry")
def retry(hash: Hash, as_json: Json = False) -> None:
    """Use a pair again that failed, once you know why. Needs your approval passphrase."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.prompt import with_presence
    from goex.rpc import reversions_pb2 as pb

    with connect(out) as client:
        reply = with_presence(
            lambda passphrase: client.call(
                "Reversions/RetryPair", pb.RetryPairRequest(hash=hash, passphrase=passphrase), pb.RetryPairReply
            )
        )
    out.message(reply)
    if not as_json:
        out.say(shown(f"The undo pair {reply.hash[:12]} is used again."))


@app.command("restore")
def restore(as_json: Json = False) -> None:
    """Make the set anew from the journal, where the state database was altered. Needs your approval passphrase."""
    out = Output(as_json)
    from goex.cli.connect import connect
    from goex.cli.prompt import with_presence
    from goex.rpc import reversions_pb2 as pb

    with connect(out) as client:
        reply = with_presence(
            lambda passphrase: client.call(
                "Reversions/RestorePairs",
                pb.RestorePairsRequest(passphrase=passphrase),
                pb.RestorePairsReply,
                seconds=600.0,
            )
        )
    out.message(reply)
    if not as_json:
        out.say(f"Restored from the journal: {reply.count} pairs and uses.")


def _add(
    checked: pb.CheckPairsReply, request: pb.AddPairsRequest, client: object, *, ask: bool = False
) -> pb.AddPairsReply:
    """Show what would be added on the terminal, and add it with presence. A model's needs a yes of its own."""
    from goex.cli.prompt import Line, Terminal, with_presence
    from goex.client import Client
    from goex.rpc import reversions_pb2 as pb

    assert isinstance(client, Client)
    terminal: Terminal | None = Terminal.controlling()
    if terminal is None and ask:
        raise Denied("What a model proposes is added on a terminal alone.", next_step="Run it where you can answer.")
    if terminal is not None:
        width = terminal.size[0]
        lines = [
            Line(("  ┊ " if index else "") + part, style)
            for one in checked.pairs
            for text, style in _lines(one)
            for index, part in enumerate(fold(text, width - 4))
        ]
        agreed = terminal.show(lines) and (terminal.ask("Add this? [y/N] ") or "").lower() in ("y", "yes")
        if not agreed:
            raise Denied("Nothing was added.", next_step="Answer y to add it.")

    def send(passphrase: str) -> pb.AddPairsReply:
        request.passphrase = passphrase
        return client.call("Reversions/AddPairs", request, pb.AddPairsReply)

    return with_presence(send, terminal)


def _added(out: Output, reply: pb.AddPairsReply) -> None:
    out.message(reply)
    if not out.as_json:
        for one in reply.pairs:
            out.say(shown(f"Added {one.hash[:12]}: {one.method} is taken back by {', '.join(one.calls)}."))


def _lines(reply: pb.ShowPairReply) -> Iterator[tuple[str, Style]]:
    """A pair in full: nothing of it is cut."""
    one = reply.pair
    yield shown(f"{one.method}, {one.fits}"), "bold"
    standing = _STANDINGS.get(one.standing, one.standing)
    yield shown(f"  {_SOURCES.get(one.source, one.source)}; {standing}"), ""
    if one.added:
        yield shown(f"  added {local(one.added)} by {one.by}"), ""
    undo = json.loads(reply.undo_json)
    for role, words in (("pre", "first reads"), ("after", "then reads"), ("guard", "compares first"),
                        ("guards", "compares first"), ("calls", "takes back by"),
                        ("verify", "reads back")):  # fmt: skip
        found = undo.get(role, [])
        for call in found if isinstance(found, list) else [found]:
            arguments = json.dumps(call["arguments"], ensure_ascii=False)
            yield shown(f"  {words} {call['method']} {arguments}"), ""
            for expect in call.get("expect", ()):
                said = {name: value for name, value in expect.items() if name != "says"}
                yield shown(f"      expects {json.dumps(said, ensure_ascii=False)}"), ""
    if undo.get("restores"):
        yield shown(f"  writes back the old fields of its {undo['restores']} that the call wrote"), ""
    for scope in one.scopes:
        yield shown(f"  needs {scope}"), ""
    if one.note:
        yield shown(f"  what remains: {one.note}"), ""
    yield shown(f"  {reply.pair.hash}"), "dim"


def _text(file: Path) -> str:
    try:
        data = file.read_bytes()
        if len(data) > MAX_FILE:
            raise InvalidInput(f"{shown(str(file))} is larger than {MAX_FILE} bytes.")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{shown(str(file))} can't be read: {getattr(error, 'strerror', None) or error}.",
            next_step="Name a TOML file.",
        ) from error
