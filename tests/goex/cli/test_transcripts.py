"""Transcripts: what each command prints, on which stream, and its exit status.

A file in tests/transcripts/cli is a list of commands with what they print without a terminal. `$` is a command, `<`
a line of its stdin, `!` a line of stderr, `?` the exit status, `# with NAME` the scene; anything else is a line of
stdout. GOEX_WRITE_TRANSCRIPTS=1 writes them anew, to be read before they are kept.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from goex.engine.rulebook import unbound_text
from goex.rpc import accounts_pb2 as ab
from goex.rpc import goex_pb2 as pb
from policies.rules.suggestions import Suggested, Suggestion
from tests.goex.cli.conftest import Inside
from tests.goex.cli.fake import Fake, approval, finished, mapped, problem, state, view
from tests.mapper.importing import openapi_documents
from tests.mapper.importing.documents import things

FOLDER = Path(__file__).parents[2] / "transcripts" / "cli"
FILES = sorted(FOLDER.glob("*.txt"))


def _ran(fake: Fake) -> None:
    output = pb.Event(action_id="ac-0001", output=pb.Output(stream="stdout", data=b"one\n\x1b[31mtwo\n"))
    fake.events = [
        state("received", "map", "mapped"),
        mapped(sure=True),
        state("allowed", "run", "running"),
        pb.Event(action_id="ac-0001", progress="step 1 of 1"),
        output,
        finished(answer="It said \u202ehi."),
    ]


def _fails(fake: Fake) -> None:
    bad = problem("conflict", 6, "The folder changed since.", "Look at the difference, then undo by hand.")
    bad.details.extend(["- a.txt", "+ b\x1b[2J.txt"])
    fake.events = [finished(action=view(state="failed", can_undo=False, outcome_json=""), problem=bad)]


def _waits(fake: Fake) -> None:
    fake.events = [state("assessed", "ask", "asking"), pb.Event(action_id="ac-0001", asking=approval()), finished()]


def _unsure(fake: Fake) -> None:
    fake.events = [mapped(), finished(action=view(can_undo=False, outcome_json=""), problem=problem("ambiguous", 5))]


def _unknown(fake: Fake) -> None:
    fake.list = [view(state="unknown", outcome_json="")]
    lost = problem("unknown", 9, "The daemon stopped while this ran, and it can't be known what it did.", "")
    lost.details.extend(["call-0 was sent, and no answer came", "the service said \x1b[2Jnothing"])
    fake.story_problem = lost


def _nothing_since(fake: Fake) -> None:
    fake.way.clear()


def _stays(fake: Fake) -> None:
    fake.way = fake.way[2:3]


def _stops(fake: Fake) -> None:
    fake.scripts = [
        [finished()],
        [finished(action=view(state="failed"), problem=problem("conflict", 6))],
        [finished(action=view(state="failed"), problem=problem("denied", 3))],
    ]


def _altered(fake: Fake) -> None:
    fake.verify = pb.VerifyLogReply(good=False, rows=7, problem="Row 3 isn't what was written.")


def _lost(fake: Fake) -> None:
    fake.verify.problem = "3 sealed records can't be opened, since the vault has no key for them."


def _sealed(fake: Fake) -> None:
    fake.verify.authenticated = False
    fake.status.vault = "sealed"


def _absent(fake: Fake) -> None:
    fake.status.vault = "absent"


def _new(fake: Fake) -> None:
    for scope in fake.accounts.offers[0].scopes:
        scope.granted = False


def _imported(fake: Fake) -> None:
    fake.accounts.offers[0].confirm = True
    fake.accounts.offers[0].said_by = "import"


def _nowhere(fake: Fake) -> None:
    fake.accounts.offers[0].said_by = ""


def _device(fake: Fake) -> None:
    code = ab.EnterCode(
        user_code="WDJB-MJHT",
        verification_url="https://login.example.org/device",
        deadline="2026-01-02T03:14:05+00:00",
        scopes=["notes.read"],
    )
    fake.accounts.events[1] = ab.LoginEvent(code=code)


def _dropped(fake: Fake) -> None:
    fake.accounts.events[2].done.dropped.append("notes.write")


def _unreachable(fake: Fake) -> None:
    fake.accounts.logout = ab.LogoutReply(
        service="notes",
        account="default",
        why="The login wasn't taken back at the provider: it can't be reached.",
        next_step="Remove GoEx's access on the provider's own page.",
    )


def _empty(fake: Fake) -> None:
    fake.accounts.list.clear()
    fake.list.clear()
    fake.pending.clear()
    fake.logged.clear()
    fake.databases.list.clear()


def _rows(fake: Fake) -> None:
    rows = {"columns": ["id", "name\x1b[2J"], "rows": [[1, "one\u202e"], [2, None]], "cut": 3}
    outcome = {"ok": True, "summary": "Done in shop: 5 rows read.", "changes": [], "results": [rows]}
    action = view(kind="sql", undo_class="nothing", can_undo=False, outcome_json=json.dumps(outcome))
    fake.events = [state("allowed", "run", "running"), finished(action=action)]


def _documents(fake: Fake) -> None:
    found = {
        "documents": [{"_id": 1, "name": "one\u202e"}, {"_id": {"$oid": "0123456789abcdef01234567"}}],
        "more": True,
    }
    outcome = {"ok": True, "summary": "Done in shop: 2 documents read.", "changes": [], "results": [found]}
    action = view(kind="mongo", undo_class="nothing", can_undo=False, outcome_json=json.dumps(outcome))
    fake.events = [finished(action=action)]


def _program(fake: Fake) -> None:
    told = [
        {"request": "POST https://slack.com/api/chat.delete", "call": "slack.chat.delete",
         "reason": "this request isn't one that the program may make", "times": 2},
        {"request": "GET https://evil.example/\\u{202e}x", "call": "",
         "reason": "no rule is for this host", "times": 1},
    ]  # fmt: skip
    outcome = {"ok": False, "summary": "The program ended with 1. 3 requests were refused.", "exit_code": 1}
    outcome |= {"changes": ["slack.chat.postMessage: 1 request"], "refused": told, "stdout": "posted\n"}
    action = view(kind="code", undo_class="compensating", outcome_json=json.dumps(outcome))
    bad = problem("failed", 1, "The program ended with 1. 3 requests were refused.")
    fake.events = [state("allowed", "run", "running"), finished(action=action, problem=bad)]


def _held(fake: Fake) -> None:
    outcome = {"ok": True, "summary": "Held in shop until you commit or undo it, for 24 hours at most: 1 row changed."}
    outcome["changes"] = ["orders: 1 row updated"]
    until = "2026-01-03T03:04:05+00:00"
    fake.events = [finished(action=view(kind="sql", held_until=until, outcome_json=json.dumps(outcome)))]


def _rules_differ(fake: Fake) -> None:
    fake.rules.reply.drafts.add(change="added", name="ops", effect="permit", after="permit (…);")
    fake.rules.reply.confined.add(what="folders", to="/home/you/docs")
    fake.rules.reply.resting.add(agent="bot", until="2026-01-02T03:04:05+00:00")


def _rules_suggested(fake: Fake) -> None:
    text = (
        'permit (principal == Agent::"bot", action == Action::"call", resource == Method::"slack.chat.postMessage")\n'
        'when { context.account == "work"\n  && context.arguments has "channel" && '
        'context.arguments["channel"] == "#ops" };'
    )
    one = Suggestion(
        text=text,
        agent="bot",
        method="slack.chat.postMessage",
        account="work",
        risk="write",
        free=("text",),
        values={"channel": ('"#ops"',)},
        answers=31,
        unanswered=1,
        new=2,
    )
    fake.rules.suggested = Suggested(rules=(one,), asked=40, answered=31, denied=2, unanswered=1)


def _rules_suggested_for_import(fake: Fake) -> None:
    """The names of its arguments are its document's."""
    _rules_suggested(fake)
    (one,) = fake.rules.suggested.rules
    free = ("text", "note\u202e", "n\u043ete")
    fake.rules.suggested = replace(fake.rules.suggested, rules=(replace(one, free=free),))


def _rules_altered(fake: Fake) -> None:
    fake.rules.reply.ClearField("rules")
    fake.rules.reply.trouble = "The rules in the state database were altered."


def _rules_elsewhere(fake: Fake) -> None:
    fake.rules.reply.catalog = unbound_text({"notes.readNote": "ab" * 32, "notes.listNotes": ""})


def _rules_wrong(fake: Fake) -> None:
    fake.rules.reply.drafts_trouble = "work.cedar:1:26: unexpected token 'resource'."


def _pairs_altered(fake: Fake) -> None:
    fake.reversions.reply.trouble = "The undo pair 0123456789ab in the state database was altered."
    fake.reversions.reply.strict = "bot"


def _keyring(fake: Fake) -> None:
    fake.status.keyed_by = "keyring"


def _broken(fake: Fake) -> None:
    fake.status.vault = "broken"
    fake.status.vault_trouble = "SQLite can't read the vault's file (SQLITE_NOTADB)."


def _sealed_by_lock(fake: Fake) -> None:
    fake.status.vault = "sealed"
    fake.status.vault_trouble = "the screen was locked"
    fake.status.sealing = "after 8 h without use, on lock, before sleep"


def _nothing_lent(fake: Fake) -> None:
    fake.vault.leases.clear()


SCENES: dict[str, Callable[[Fake], None]] = {
    "rules that differ": _rules_differ,
    "rules that are suggested": _rules_suggested,
    "a rule that is suggested for an import": _rules_suggested_for_import,
    "rules that were altered": _rules_altered,
    "rules for another catalog": _rules_elsewhere,
    "rules that are wrong": _rules_wrong,
    "pairs that were altered": _pairs_altered,
    "ran": _ran,
    "rows": _rows,
    "documents": _documents,
    "a program": _program,
    "a hold": _held,
    "fails": _fails,
    "waits": _waits,
    "unsure": _unsure,
    "unknown": _unknown,
    "nothing since": _nothing_since,
    "what stays": _stays,
    "one that fails": _stops,
    "altered": _altered,
    "what is sealed lost": _lost,
    "sealed": _sealed,
    "absent": _absent,
    "empty": _empty,
    "keyring": _keyring,
    "broken": _broken,
    "sealed by the lock": _sealed_by_lock,
    "nothing lent": _nothing_lent,
    "nothing granted": _new,
    "an import's word": _imported,
    "an unknown login": _nowhere,
    "a device": _device,
    "a dropped scope": _dropped,
    "no answer": _unreachable,
}


def commands(text: str) -> list[tuple[str, str, list[str]]]:
    """(scene, command, lines of stdin) in order."""
    found: list[tuple[str, str, list[str]]] = []
    scene = ""
    for line in text.splitlines():
        if line.startswith("# with "):
            scene = line.removeprefix("# with ")
        elif line.startswith("$ goex "):
            found.append((scene, line.removeprefix("$ goex "), []))
            scene = ""
        elif line.startswith("< "):
            found[-1][2].append(line.removeprefix("< "))
    return found


def _rules(home: Path) -> None:
    """The person's drafts, a file with mistakes, and two tables of cases."""
    folder = home / "c" / "goex" / "rules"
    folder.mkdir(parents=True)
    (folder / "work.cedar").write_text(
        "// What the bot may post.\n"
        '@id("ops") permit (principal == Agent::"bot", action == Action::"call",\n'
        '    resource == Method::"slack.chat.postMessage")\n'
        'when { context.arguments.channel == "#ops" };\n'
    )
    (home / "wrong.cedar").write_text(
        'permit (principal, action resource);\n@id("b") forbid (principal, action, resource in Service::"slak");\n'
        '@id("c\\u{41}") forbid (principal, action, resource) when { context.riks_level > 2 };\n'
    )
    ops = '[[case]]\nname = "in #ops"\ncall = "slack.chat.postMessage"\nexpect = "allow"\nrule = "ops"\n'
    (home / "good.toml").write_text(ops + 'arguments = { channel = "#ops", text = "hi" }\n')
    (home / "bad.yaml").write_text(
        "case:\n"
        "- {name: elsewhere, call: slack.chat.postMessage, arguments: {channel: '#a', text: hi}, expect: deny}\n"
        "- {name: a list, call: slack.users.list, granted: ['users:read'], expect: allow}\n"
        "- {name: a deletion, call: slack.chat.delete, granted: ['chat:write'], expect: allow}\n"
    )
    (home / "odd.toml").write_text('[[case]]\ncall = "slack.chat.post"\nexpect = "allow"\n')


def _pairs(home: Path) -> None:
    """A file of undo pairs, and one with a mistake."""
    pin = 'arguments = { channel = "$request.channel", timestamp = "$request.timestamp" }'
    (home / "pairs.toml").write_text(
        'method = "slack.pins.add"\nwhen = { channel = "C0*" }\n[undo]\n'
        f'calls = [{{ method = "pins.remove", {pin} }}]\n'
        'verify = { method = "pins.list", arguments = { channel = "$request.channel" } }\n'
    )
    (home / "bad-pairs.toml").write_text(
        'method = "slack.pins.add"\n[undo]\ncalls = [{ method = "pins.drop", arguments = {} }]\n'
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_transcript(file: Path, inside: Inside, fake: Fake) -> None:
    kept = file.read_text(encoding="utf-8")
    home = Path(inside.env["HOME"])
    (home / "old.goex").write_text("a backup")
    (home / "token.json").write_text('{"token": "in a file"}')
    things(home / "documents")
    openapi_documents.files(home)
    _rules(home)
    _pairs(home)
    (home / "report.py").write_text("import os\n")
    made: list[str] = []
    for scene, command, stdin in commands(kept):
        # A scene lasts for one command.
        pristine = Fake()
        for name in ("events", "scripts", "pending", "list", "way", "story_problem", "logged", "verify", "status"):
            setattr(fake, name, getattr(pristine, name))
        vars(fake.accounts).update(vars(pristine.accounts))
        vars(fake.rules).update(vars(pristine.rules))
        vars(fake.reversions).update(vars(pristine.reversions))
        vars(fake.vault).update(vars(pristine.vault))
        vars(fake.databases).update(vars(pristine.databases))
        if scene:
            SCENES[scene](fake)
            made.append(f"# with {scene}")
        ran = inside(*shlex.split(command), stdin="".join(line + "\n" for line in stdin).encode())
        made += [
            f"$ goex {command}",
            *(f"< {line}" for line in stdin),
            *_lines(_steady(ran.out.replace(str(home), "/home/you")), ""),
        ]
        progress = re.compile(r"\d+ of \d+: .*\n")  # of an import, every ten seconds: so slow is the machine
        made += [*_lines(progress.sub("", ran.err), "! "), f"? {ran.code}", ""]
        if "--json" in command:
            streams = command.split()[0] in ("exec", "task", "undo", "redo", "commit") and ran.code != 2
            streams = streams or command.startswith("auth login notes") or "--dry-run" in command
            documents = [json.loads(line) for line in ran.out.splitlines()]
            assert all(isinstance(document, dict) for document in documents)
            assert streams or len(documents) == 1
    # How long an import takes is the machine's, not ours.
    text = re.sub(r", in \d+ s;", ", in 0 s;", "\n".join(line.rstrip() for line in made))
    if os.environ.get("GOEX_WRITE_TRANSCRIPTS") == "1":
        file.write_text(text, encoding="utf-8")
    assert text == kept


def test_there_are_transcripts_of_every_command() -> None:
    from goex.cli.main import app

    said = {command.split()[0] for file in FILES for _, command, _ in commands(file.read_text(encoding="utf-8"))}
    names = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    # Those two speak of this machine, and have tests of their own.
    assert names - said == {"doctor", "images"}


def _steady(text: str) -> str:
    """Without what differs between two runs: how long an import took, and how large the catalog is."""
    text = re.sub(r"in \d+ s;(.*) is \d+\.\d MB", r"in 0 s;\1 is 0.1 MB", text)
    return re.sub(r'"seconds": [\d.]+', '"seconds": 0.0', text)


def _lines(text: str, mark: str) -> list[str]:
    return [mark + line for line in text.splitlines()]
