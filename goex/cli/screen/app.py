"""The full screen on which the person decides: left what waits, right the whole of one question, or its dry run.

Rules are those of `goex.cli.prompt` and `goex.cli.screen.board`: the daemon decides whether a decision counts, and this
only sends the digest of what was shown whole. A passphrase never enters the screen: for it the screen steps aside, and
the terminal asks as it does for every other command. Foreign text is escaped and drawn as plain text.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rich.segment import Segment, Segments
from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Button, Static

from goex.cli.dryrun import lines_of
from goex.cli.output import fold
from goex.cli.question_text import Line, describe, offered, who
from goex.cli.screen.board import Board, clock, remaining
from goex.cli.screen.dialogs import NAMES, Allow, Deny, No, Yes
from goex.cli.screen.dryruns import DryRuns
from goex.cli.screen.feed import Feed, whole
from goex.cli.screen.style import CSS, SMALLEST
from goex.cli.screen.widgets import Queue, Text
from goex.rpc import goex_pb2 as pb
from policies.display_text import escape
from policies.errors import GoexError

if TYPE_CHECKING:
    from goex.client import Client

T = TypeVar("T")
Present = Callable[[Callable[[str], T], str], T]

HINT = "↑ ↓ choose, space reads on, o s g a allow, d denies, y runs it dry, q quits."
_KEYS = {"once": "o", "session": "s", "arguments": "g", "permanent": "a"}


class Told(Message):
    """Something for the screen's own thread to do, from another one."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__()
        self.work = work


class ApproveScreen(App[None]):
    """`present(call, what)` makes a call that may ask for the approval passphrase, on the terminal itself. `back` says
    whether a daemon that went away is there again."""

    CSS = CSS
    TITLE = "GoEx"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("pageup,b", "page(-1)", show=False),
        Binding("home", "edge(0)", show=False),
        Binding("end", "edge(1)", show=False),
        *(Binding(key, f"allow('{width}')", show=False) for width, key in _KEYS.items()),
        Binding("d", "deny", show=False),
        Binding("y", "dry_run", show=False),
        Binding("p", "plan", show=False),
        Binding("q", "quit", show=False),
        Binding("ctrl+c,ctrl+q", "quit", show=False, priority=True),
    ]

    def __init__(self, client: Client, *, present: Present[Any], back: Callable[[], bool]) -> None:
        super().__init__()
        self.board = Board()
        self._client = client
        self._present = present
        self._feed = Feed(client, self, back)
        self._dry = DryRuns(client, self._tell, self._draw)
        self._tab = "plan"
        self._too_small = False

    def compose(self) -> ComposeResult:
        yield Static("", id="top", markup=False)
        with Horizontal(id="middle"):
            yield Queue(self.board)
            with Vertical(id="right"):
                yield Static("", id="what", markup=False)
                yield Text("plan", self._drawn)
                yield Text("dry")
        yield Static("", id="status", markup=False)
        with Horizontal(id="keys", classes="buttons"):
            for width, key in _KEYS.items():
                label = {"once": "Once", "session": "Session", "arguments": "Same", "permanent": "Always"}[width]
                yield Button(f"{key} {label}", id=f"allow-{width}", compact=True)
            yield Button("d Deny", id="deny", compact=True)
            yield Button("y Dry run", id="dry-run", compact=True)
            yield Button("p Plan", id="to-plan", compact=True)
            yield Button("q Quit", id="quit", compact=True)
        yield Static("", id="small", markup=False)

    def on_mount(self) -> None:
        self._home.query_one("#dry").display = False
        self._fit(self.size)
        self._home.query_one("#queue").focus()
        self.set_interval(1.0, self._tick)
        self._draw()
        self._feed.start()

    async def action_quit(self) -> None:
        self._stop()
        self.exit()

    def on_unmount(self) -> None:
        self._stop()

    def _stop(self) -> None:
        self._feed.stop()
        self._dry.cancel()

    # ---- what the daemon says (from other threads)

    def listed(self, pending: list[pb.Approval], left_out: int) -> None:
        self._tell(lambda: self._listed(pending, left_out))

    def arrived(self, approval: pb.Approval) -> None:
        self._tell(lambda: self._arrived(approval))

    def away(self, why: str) -> None:
        self._tell(lambda: self._away(why))

    def _tell(self, work: Callable[[], None]) -> None:
        self.post_message(Told(work))

    @on(Told)
    def _told(self, event: Told) -> None:
        if self._there:
            event.work()

    def _listed(self, pending: list[pb.Approval], left_out: int) -> None:
        first = not self.board.items and not self.board.ended
        word = self.board.resync(pending)
        if left_out:
            word = f"{word} {left_out} more wait than fit here.".strip()
        self._say(word or HINT)
        if first and (id := self.board.step(1)):
            self._select(id)  # nothing was selected, and nothing could be: the screen has only just opened
        self._draw()

    def _arrived(self, approval: pb.Approval) -> None:
        was, mine = self.board.selected, approval.id in self.board.mine
        word = self.board.put(approval)
        if word:
            self._dry.forget(approval.id)
            if not mine:
                self._say(word)
        if was and not self.board.selected:
            self._close_dialog()
        self._draw()

    def _away(self, why: str) -> None:
        self.board.connected = False
        self._close_dialog()
        self._say(f"The daemon is away: {escape(why)}")
        self._draw()

    # ---- looking

    def action_move(self, by: int) -> None:
        if id := self.board.step(by):
            self._select(id)

    @on(Queue.Chosen)
    def _chosen(self, event: Queue.Chosen) -> None:
        self._select(event.chosen)

    def _select(self, id: str) -> None:
        self.board.select(id)
        self._tab = "plan"
        item = self.board.current
        if item is not None and item.whole is None:
            self.run_worker(lambda: self._fetch(id), thread=True, group="fetch")
        self._draw()
        self._home.query_one(Queue).reveal(id)

    def _fetch(self, id: str) -> None:
        try:
            found = whole(self._client, id)
        except GoexError as error:
            word = f"It can't be shown: {escape(error.message)}"
            self._tell(lambda: self._say(word))
            return
        if found is not None:
            self._tell(lambda: self._fetched(found))

    def _fetched(self, found: pb.Approval) -> None:
        self.board.fetched(found)
        self._draw()

    def action_page(self, by: int) -> None:
        text = self._text
        text.scroll_relative(y=by * max(text.size.height - 1, 1), animate=False)

    def action_edge(self, end: int) -> None:
        self._text.scroll_to(y=self._text.max_scroll_y if end else 0, animate=False)

    def _drawn(self, key: str, end: bool) -> None:
        if self.board.selected and key.startswith(f"plan {self.board.selected} "):
            self.board.stands(self.board.selected, time.monotonic(), end=end)

    @property
    def _text(self) -> Text:
        return self._home.query_one(f"#{self._tab}", Text)

    # ---- deciding

    def action_allow(self, width: str) -> None:
        item, why = self.board.current, self._why_not(allow=True)
        if why or item is None or item.whole is None:
            self._refuse(why)
            return
        if width not in offered(item.whole):
            self._refuse(f"It can't be allowed {NAMES[width]}.")
            return
        shown = item.whole
        self.push_screen(Allow(shown, width), lambda yes: self._answered(shown, width, yes))

    def action_deny(self) -> None:
        item, why = self.board.current, self._why_not(allow=False)
        if why or item is None or item.whole is None:
            self._refuse(why)
            return
        shown = item.whole
        self.push_screen(Deny(shown), lambda no: self._answered(shown, "", no))

    def _answered(self, shown: pb.Approval, width: str, said: Yes | No | None) -> None:
        if said is None:
            self._say("Nothing was decided.")
            return
        if self.board.selected != shown.id or (why := self._why_not(allow=isinstance(said, Yes))):
            self._refuse(why if self.board.selected == shown.id else self.board.ended)
            return
        request = pb.DecideRequest(approval_id=shown.id, digest=shown.digest)
        if isinstance(said, Yes):
            request.approve, request.width, request.expires_seconds = True, width, said.seconds
        else:
            request.reason = said.reason
            request.same_as.extend(shown.same_as)
        self.board.mine.add(shown.id)
        self._say("Telling the daemon…")
        self.run_worker(lambda: self._decide(request), thread=True, group="decide")

    def _decide(self, request: pb.DecideRequest) -> None:
        """In a thread. The passphrase is asked for only when the daemon says that presence is due."""
        from goex.client import Refused

        try:
            self._client.decide(request)
        except Refused as error:
            failed = error
            if error.code == "presence" and request.approve:
                self._tell(lambda: self._step_aside(request))
                return
            self._tell(lambda: self._failed(request.approval_id, failed))
        except GoexError as error:
            other = error
            self._tell(lambda: self._failed(request.approval_id, other))
        else:
            self._tell(lambda: self._decided(request))

    def _step_aside(self, request: pb.DecideRequest) -> None:
        def call(passphrase: str) -> pb.Approval:
            request.passphrase = passphrase
            try:
                return self._client.decide(request)
            finally:
                request.passphrase = ""

        item = self.board.items.get(request.approval_id)
        what = f"Allow {request.approval_id} {NAMES[request.width]}"
        if item is not None:
            what += f" ({who(item.brief)}, {item.brief.risk or 'unknown risk'})"
        try:
            self._present(call, escape(f"{what}?"))
        except GoexError as error:
            self._failed(request.approval_id, error)
        else:
            self._decided(request)

    def _decided(self, request: pb.DecideRequest) -> None:
        how = f"allowed {NAMES[request.width]}" if request.approve else "denied"
        self._say(f"{escape(request.approval_id)}: {how}.")
        self._draw()

    def _failed(self, id: str, error: GoexError) -> None:
        self.board.mine.discard(id)
        self._refuse(escape(f"{error.message} {error.next_step}".strip()))

    def _why_not(self, *, allow: bool) -> str:
        if self._too_small:
            return "The terminal is too small."
        if self._tab != "plan":
            return "Go back to the plan first (p)."
        return self.board.why_not(time.monotonic(), datetime.now(UTC), allow=allow)

    def _refuse(self, why: str) -> None:
        self._say(why)
        self.bell()

    def _close_dialog(self) -> None:
        if isinstance(self.screen, Allow | Deny):
            self.screen.dismiss(None)

    # ---- the dry run

    def action_dry_run(self) -> None:
        item = self.board.current
        if item is None or item.whole is None or self._too_small:
            self._refuse(self.board.ended or "Choose a question first (↑ ↓).")
            return
        self._tab = "dry"
        self._dry.ask(item.whole)
        self._draw()

    def action_plan(self) -> None:
        self._tab = "plan"
        self._draw()

    # ---- drawing

    def _draw(self) -> None:
        board, item = self.board, self.board.current
        waits = f"{len(board.items)} wait for you" if len(board.items) != 1 else "1 waits for you"
        state = "" if board.connected else "  ·  the daemon is away"
        self._home.query_one("#top", Static).update(
            f" GoEx  ·  {waits if board.items else 'nothing waits for you'}{state}"
        )
        self._home.query_one(Queue).redraw()
        plan, dry = self._home.query_one("#plan", Text), self._home.query_one("#dry", Text)
        plan.display, dry.display = self._tab == "plan", self._tab == "dry"
        if item is None or item.whole is None:
            word = "Fetching it…" if item is not None else board.ended or "Nothing is selected: choose with ↑ ↓."
            self._show(plan, f"word {word}", lambda width: [Line(piece) for piece in fold(word, max(width, 10))])
        else:
            shown = item.whole
            moving = f"{shown.count} {shown.place} {shown.waiting}"
            self._show(
                plan,
                f"plan {item.id} {shown.digest} {moving}",
                lambda width: describe(shown, max(width, 10), datetime.now(UTC)),
            )
        found = self._dry.of(board.selected)
        if isinstance(found, str):
            self._show(dry, f"wait {found}", lambda width: [Line(piece) for piece in fold(found, max(width, 10))])
        else:
            self._show(dry, f"dry {board.selected}", lambda width: lines_of(found, max(width, 10)))
        self._home.query_one("#dry-run").display = self._tab == "plan"
        self._home.query_one("#to-plan").display = self._tab == "dry"
        for width in _KEYS:
            offers = item is not None and item.whole is not None and width in offered(item.whole)
            self._home.query_one(f"#allow-{width}").display = offers
        self._head()

    def _show(self, text: Text, key: str, content: Callable[[int], list[Line]]) -> None:
        if text.key != key:
            same = text.key.split(" ")[:3] == key.split(" ")[:3]  # only its place in the queue, or its twins, changed
            text.show(key, content, keep_place=same)

    def _head(self) -> None:
        item = self.board.current
        head = ""
        if item is not None:
            left = clock(remaining(item.brief.deadline, datetime.now(UTC)))
            twins = f"  ·  {item.brief.count} identical" if item.brief.count > 1 else ""
            head = f"{'Plan' if self._tab == 'plan' else 'Dry run'}  ·  {left} left{twins}"
        self._home.query_one("#what", Static).update(head)

    def _tick(self) -> None:
        if not self._there:
            return
        self._home.query_one(Queue).redraw()
        self._head()

    def _say(self, text: str) -> None:
        pieces = fold(text, max(self.size.width - 1, 10))
        self._home.query_one("#status", Static).update("\n".join(f" {piece}" for piece in pieces[:2]))

    # ---- the terminal

    @property
    def _home(self) -> Screen[object]:
        """The screen below any dialog."""
        return self.screen_stack[0]

    @property
    def _there(self) -> bool:
        """Whether there is anything to draw on: not before the screen opens, nor while it closes."""
        return bool(self.screen_stack) and bool(self._home.query("#small"))

    def on_resize(self, event: events.Resize) -> None:
        if self._there:
            self._fit(event.size)

    def _fit(self, size: Size) -> None:
        self._too_small = small = size.width < SMALLEST[0] or size.height < SMALLEST[1]
        if small:
            self._close_dialog()
        for id in ("top", "middle", "status", "keys"):
            self._home.query_one(f"#{id}").display = not small
        note = self._home.query_one("#small", Static)
        note.display = small
        note.update(
            f"The terminal is too small ({size.width}×{size.height}): at least {SMALLEST[0]}×{SMALLEST[1]} "
            "are needed to show what is decided on. Nothing was decided; q leaves."
        )

    @on(Button.Pressed, "#keys Button")
    async def _pressed(self, event: Button.Pressed) -> None:
        id = event.button.id or ""
        if id.startswith("allow-"):
            self.action_allow(id.removeprefix("allow-"))
        elif id == "deny":
            self.action_deny()
        elif id == "dry-run":
            self.action_dry_run()
        elif id == "to-plan":
            self.action_plan()
        elif id == "quit":
            await self.action_quit()

    def _fatal_error(self) -> None:
        """A defect of the screen ends it with a line, not with the values of every variable."""
        self._exit_renderables.append(
            Segments([Segment("goex: Internal error; the screen was closed. See what was decided: goex log\n")])
        )
        self._close_messages_no_wait()
