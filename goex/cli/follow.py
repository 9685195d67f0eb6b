"""Following one action from its request to its end.

Rules: the stream is read by a thread of its own, so that a question on the terminal notices when it was settled
elsewhere or ran out. On a terminal the question is asked right here; otherwise a line says where to answer, and we
wait. Ctrl-C cancels the action. Every event is one JSON line with `--json`.
"""

from __future__ import annotations

import codecs
import json
import queue
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from goex.cli.action_text import changed_nothing
from goex.cli.output import Output, local, print_error, shown, to_json
from goex.cli.prompt import EXPIRED, NotPresent, Terminal, Verdict, decide, settled_words
from policies.display_text import counted, escape_name
from policies.errors import Denied, ExitStatus, GoexError

if TYPE_CHECKING:
    from goex.client import Client, Events
    from goex.rpc import goex_pb2 as pb

T = TypeVar("T")
_BEFORE_DETACHING = ("received", "mapped", "assessed", "asking")  # the question, with its id, comes after "asking"
_STATE_WORDS = {
    "mapped": "The words became calls.",
    "asking": "Waiting for your decision.",
    "allowed": "Allowed.",
    "prepared": "Undo is prepared.",
    "running": "Running.",
}


@dataclass(frozen=True, slots=True)
class Ended:
    """How following ended. `finished` is None when it was left alone (`--detach`)."""

    action_id: str
    finished: pb.Finished | None
    mapped: pb.MapReply | None


def next_of(waiting: queue.SimpleQueue[T]) -> T:
    """The next one, whenever it comes. Another thread may take a signal, and it is handled only once this one doesn't
    wait, so each wait is short."""
    while True:
        with suppress(queue.Empty):
            return waiting.get(timeout=0.5)


class Follower:
    """One stream, shown to the person."""

    def __init__(self, client: Client, events: Events, out: Output, *, detach: bool = False) -> None:
        self._client, self._events, self._out, self._detach = client, events, out, detach
        self._terminal = None if out.as_json or detach else Terminal.find()
        self._queue: queue.SimpleQueue[pb.Event | GoexError | None] = queue.SimpleQueue()
        self._seen: deque[pb.Event | GoexError | None] = deque()
        self._decoders: dict[str, Any] = {}
        self._status: Any = None
        self._put_off: set[str] = set()
        self._decided: set[str] = set()
        self.printed = False  # whether output of the action was shown as it came
        self.waits = False  # whether it was left at its question

    def run(self) -> Ended:
        """Follow to the end. Raises GoexError when the stream fails, KeyboardInterrupt after cancelling."""
        threading.Thread(target=self._pump, daemon=True).start()
        mapped, finished = None, None
        try:
            for event in self._arriving():
                what = event.WhichOneof("what")
                if self._out.as_json:
                    self._out.json(to_json(event))
                self._show(event, what)
                if what == "mapped":
                    mapped = event.mapped
                elif what == "finished":
                    finished = event.finished
                elif self._detach and (what == "asking" or _under_way(event)):
                    self.waits = what == "asking"
                    break
        except KeyboardInterrupt:
            self._quiet()
            self._cancel()
            raise
        except GoexError:
            self._quiet()
            if id := self._events.action_id:
                self._out.progress(f"The action is {id}. See what became of it with: goex show {id}")
            raise
        finally:
            self._quiet()
            self._events.cancel()
        return Ended(self._events.action_id, finished, mapped)

    def _pump(self) -> None:
        try:
            for event in self._events:
                self._queue.put(event)
        except GoexError as error:
            self._queue.put(error)
        except Exception as error:  # noqa: BLE001  carried to the thread that can say it
            self._queue.put(GoexError(f"The stream broke: {type(error).__name__}: {error}.", next_step="See: goex log"))
        self._queue.put(None)

    def _arriving(self) -> Iterator[pb.Event]:
        while True:
            item = self._seen.popleft() if self._seen else next_of(self._queue)
            if item is None:
                return
            if isinstance(item, GoexError):
                raise item
            yield item

    def _gone(self, approval_id: str) -> str:
        """Whether what arrived meanwhile makes the question idle."""
        with suppress(queue.Empty):
            while True:
                self._seen.append(self._queue.get_nowait())
        for item in self._seen:
            if item is None or isinstance(item, GoexError):
                return "The daemon went away."
            if item.HasField("finished"):
                return EXPIRED if item.finished.problem.code == "timed-out" else "The action has ended meanwhile."
            if item.HasField("state") and item.state.event == "expire":
                return EXPIRED
            if item.HasField("asking") and item.asking.id == approval_id and item.asking.state != "pending":
                return settled_words(item.asking.state)
        return ""

    def _show(self, event: pb.Event, what: str | None) -> None:
        if what == "progress":
            self._progress(event.progress)
        elif what == "state" and event.state.to in _STATE_WORDS:
            self._progress(_STATE_WORDS[event.state.to])
        elif what == "mapped":
            self._quiet()
            if event.mapped.sure:
                show_candidates(self._out, event.mapped, all_of_them=False)
        elif what == "output":
            self._quiet()
            self._output(event.output)
        elif what == "asking":
            self._quiet()
            self._asking(event.asking)

    def _asking(self, approval: pb.Approval) -> None:
        # After a restart the stream tells again what is open, which may be what was answered a moment ago.
        if approval.state not in ("", "pending") or approval.id in self._decided:
            return
        if self._terminal is not None and approval.id not in self._put_off:
            self._look_for_presence(approval)
            try:
                verdict = decide(self._terminal, self._client, approval, lambda: self._gone(approval.id))
            except GoexError as error:
                if error.code == "settled":  # how, is what comes next
                    return
                # The action goes on waiting, so we do too. Where to answer then is the next step.
                print_error(Denied(error.message) if isinstance(error, NotPresent) else error, as_json=False)
                verdict = Verdict.LATER
            if verdict is not Verdict.LATER:
                if verdict is not Verdict.GONE:
                    self._decided.add(approval.id)
                return
            self._put_off.add(approval.id)
        where = "a terminal." if self._terminal is None else "another terminal. Ctrl-C withdraws it."
        self._out.progress(f"Waiting for approval: run `goex approve {approval.id}` in {where}")

    def _look_for_presence(self, approval: pb.Approval) -> None:
        """Whether the approval passphrase will be asked for on this terminal, which an event doesn't know."""
        with suppress(GoexError):
            for found in self._client.approvals(approval_id=approval.id):
                approval.presence, approval.presence_by = found.presence, found.presence_by
                if found.HasField("question"):  # with what the person should know now
                    approval.question.CopyFrom(found.question)

    def _output(self, output: pb.Output) -> None:
        if self._out.as_json:
            return
        self.printed = True
        decoder = self._decoders.setdefault(output.stream, codecs.getincrementaldecoder("utf-8")("replace"))
        stream = sys.stderr if output.stream == "stderr" else sys.stdout
        stream.write(shown(decoder.decode(output.data), newlines=True))
        stream.flush()

    def _progress(self, text: str) -> None:
        console = self._out.console
        if self._out.as_json or not console.is_terminal:
            self._out.progress(text)
        elif self._status is None:
            from rich.text import Text

            self._status = console.status(Text(shown(text)))
            self._status.start()
        else:
            from rich.text import Text

            self._status.update(Text(shown(text)))

    def _quiet(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _cancel(self) -> None:
        id = self._events.action_id
        if not id:
            self._out.progress("Interrupted before the daemon named the action. See whether it took it with: goex log")
            return
        if self._terminal is not None:
            with suppress(OSError):  # where the terminal is gone
                self._out.progress("")  # what was typed stands on the prompt's line
        try:
            state = self._client.cancel(id).state
        except GoexError as error:
            print_error(error, as_json=False)
            state = ""
        if state == "withdrawn":
            self._out.progress(f"Withdrew {id}: it was not run.")
            return
        if state:
            self._out.progress(f"Cancelled {id}, which is {state} now.")
        self._out.progress(f"See what it did with: goex show {id}")


def follow(client: Client, events: Events, out: Output, *, detach: bool = False) -> Ended:
    """Follow to the end and show how it ended."""
    follower = Follower(client, events, out, detach=detach)
    ended = follower.run()
    if ended.finished is not None:
        show_finished(out, ended.finished, printed=follower.printed)
    elif detach:
        how = "waiting" if follower.waits else "running"
        out.progress(f"Left {how} as {ended.action_id}. See: goex show {ended.action_id}")
        if not out.as_json:
            out.say(ended.action_id)
    return ended


def exit_code(ended: Ended) -> int:
    """The exit status that belongs to how it ended."""
    from goex.client import exit_status

    if ended.finished is not None and ended.finished.HasField("problem"):
        return int(exit_status(ended.finished.problem))
    return int(ExitStatus.OK)


def show_finished(out: Output, finished: pb.Finished, *, printed: bool) -> None:
    """The outcome, the answer in words, the undo hint, and what went wrong."""
    action = finished.action
    # A failure says its summary as the problem, once.
    said = finished.problem.message if finished.HasField("problem") else ""
    show_outcome(out, action, printed=printed, said=said)
    if finished.answer and not out.as_json:
        out.say("In words (by the model, from what the services answered):", "dim")
        out.say(shown(finished.answer, newlines=True))
    said_already = f"goex undo {action.id}" in f"{said} {finished.problem.next_step}"
    if finished.HasField("problem"):
        from goex.client import Refused

        print_error(Refused(finished.problem), as_json=False)
    if action.held_until:
        out.progress(f"Keep it with: goex commit {action.id}")
        out.progress(f"Take it back with: goex undo {action.id}; at {local(action.held_until)} GoEx does.")
    elif action.can_undo and not changed_nothing(action) and not said_already:
        out.progress(f"Take it back with: goex undo {action.id}")
    elif action.can_redo:
        out.progress(f"Do it again with: goex redo {action.id}")


def show_outcome(out: Output, action: pb.ActionView, *, printed: bool, said: str = "") -> None:
    """An action's outcome for a person; nothing with `--json`, where the events hold it.

    `said` is a summary that is shown elsewhere and left out here.
    """
    if out.as_json or not action.outcome_json:
        return
    try:
        outcome = json.loads(action.outcome_json)
    except ValueError:
        outcome = None
    if not isinstance(outcome, dict):
        out.say(shown(action.outcome_json))
        return
    summary = str(outcome.get("summary", ""))
    if summary and summary != said:
        out.say(shown(summary), "bold")
    for change in _list(outcome.get("changes")):
        out.say("  " + escape_name(str(change)))
    _show_refused(out, action.id, outcome)
    if outcome.get("changes_cut"):
        out.say(f"  … and {_count(outcome['changes_cut'], 'more change')}.", "dim")
    for result in _list(outcome.get("results")):
        if isinstance(result, dict) and result.keys() == {"columns", "rows", "cut"}:
            _show_rows(out, result)
            continue
        if isinstance(result, dict) and result.keys() == {"documents", "more"}:
            for document in _list(result["documents"]):
                out.say(shown(json.dumps(document, ensure_ascii=False)))
            if result["more"]:
                out.say("… and more documents left out.", "dim")
            continue
        text = json.dumps(result, ensure_ascii=False, indent=2)
        out.say(shown(text, newlines=True), "dim")
    if not printed:
        for name in ("stdout", "stderr"):
            if outcome.get(name):
                out.say(shown(str(outcome[name]).removesuffix("\n"), newlines=True))
    if outcome.get("cut"):
        out.say(f"{_count(outcome['cut'], 'byte')} of output left out.", "dim")


def _show_refused(out: Output, id: str, outcome: dict[str, Any]) -> None:
    """What a program tried and wasn't let, and how that could be allowed."""
    refused = [one for one in _list(outcome.get("refused")) if isinstance(one, dict)]
    for one in refused:
        times = f" ({shown(str(one.get('times')))} times)" if one.get("times") != 1 else ""
        call = f" [{shown(str(one['call']))}]" if one.get("call") else ""
        out.say(f"  refused{times}: {shown(str(one.get('request')))}{call}")
        out.block(shown(str(one.get("reason"))), indent=4)
    wider = dict.fromkeys(str(one["call"]) for one in refused if one.get("call") and not one.get("held"))
    if wider:
        methods = " ".join(f"--method {shown(name)}" for name in wider)
        out.say(f"  To let the program do that, too, ask anew: goex exec --again {id} {methods}")


def _show_rows(out: Output, result: dict[str, Any]) -> None:
    """What a SELECT gave back."""
    rows = [row for row in _list(result["rows"]) if isinstance(row, list)]
    names = [shown(str(column)) for column in _list(result["columns"])]
    out.table(names, [[_cell(value) for value in row] for row in rows], whole=True)
    if result["cut"]:
        out.say(f"… and {_count(result['cut'], 'more row')} left out.", "dim")


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def show_candidates(out: Output, mapped: pb.MapReply, *, all_of_them: bool) -> None:
    """What the words were mapped to."""
    listed = mapped.candidates if all_of_them else mapped.candidates[:1]
    for number, candidate in enumerate(listed, start=1):
        head = f"{number}. " if len(listed) > 1 else ""
        votes = f"  {candidate.votes} of {mapped.samples} votes" if mapped.samples > 1 else ""
        needs = f"needs {', '.join(candidate.scopes)}" if candidate.scopes else "needs no scope"
        out.say(f"{head}{shown(needs)}{votes}", "bold")
        for call in candidate.calls:
            account = f" on {call.account}" if call.account else ""
            out.say("   " + shown(f"{call.service}.{call.method}{account} {call.arguments_json}"))
    for rejection in mapped.rejected if all_of_them else ():
        out.say(shown(f"sample {rejection.sample} refused ({rejection.klass}): {rejection.reason}"), "dim")
    for note in mapped.notes:
        out.say(shown(note), "dim")
    # One sample agrees with itself: that says nothing. The embedded proposer's notes name it.
    if mapped.samples > 1:
        out.say(shown(f"Mapped by {mapped.proposer}; agreement {mapped.agreement:.0%}."), "dim")


def show_clarification(out: Output, asked: pb.Clarification, *, by_model: bool = True) -> None:
    """What the model, or GoEx itself, would have to know first."""
    out.say(f"{'The model asks: ' if by_model else ''}{shown(asked.text)}", "bold")
    for number, option in enumerate(asked.options, start=1):
        leads = f"  ({', '.join(option.methods)})" if option.methods else ""
        out.say(f"{number}. {shown(option.answer + leads)}")


def _under_way(event: pb.Event) -> bool:
    return event.HasField("state") and event.state.to not in _BEFORE_DETACHING


def _count(value: Any, noun: str) -> str:
    return counted(value, noun) if isinstance(value, int) else f"{shown(str(value))} {noun}s"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
