"""`goex notify`: questions as notifications, clicks as answers.

Rules:

* What is on the screen follows from what waits: events change the board, one painter brings the screen after it.
* A click allows one read, once (`card.click_allows`), and only when all notifications stood still for a moment, so
  that one that has just appeared below the pointer isn't allowed by accident. Deny settles at once. All else opens the
  page, or a terminal.
* A notification is never replaced by another question's: a click would land on what the person didn't read.
* Closing a notification decides nothing, nor does its expiry: the daemon owns the deadline.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from goex.notify import card as cards
from goex.notify import terminal
from goex.notify.board import Board, Entry
from goex.notify.card import DEFAULT, DENY, ONCE, Card
from goex.notify.feed import Feed
from goex.notify.freedesktop import NoServer, NoSession, Server
from goex.notify.notices import Notices
from goex.rpc import goex_pb2 as pb
from policies.errors import GoexError

if TYPE_CHECKING:
    from goex.config import Notify
    from goex.paths import Paths

_STILL_SECONDS = 1.0  # a notification that was drawn or moved more lately than this takes no yes
_PAINT_SECONDS = 0.1
_QUIET_SECONDS = 0.5  # without another end, after which ends are told: those of one moment as one
_LONGEST_WAIT = 3.0  # seconds that an end waits for others
_LINGER_SECONDS = 5.0  # the daemon's word on a deadline comes first
_QUICK_SECONDS = 3.0  # a terminal that fails within these didn't open
_LAST_SECONDS = 2.0
_MOST_NOTICES = 3

Tell = Callable[[str, Mapping[str, Any]], None]
Answer = Callable[[pb.Approval], Awaitable[pb.Approval]]


@dataclass(slots=True)
class Note:
    """A notification on the screen. `key` None: the summary. `asked` is what it showed when it was drawn."""

    id: int
    key: str | None
    card: Card
    asked: tuple[pb.Approval, ...] = ()


class Notifier:
    """One run. `tell(event, facts)` is told what happens, for the terminal or the log that it runs in."""

    def __init__(self, paths: Paths, settings: Notify, env: Mapping[str, str], tell: Tell) -> None:
        self._settings, self._env, self._tell = settings, env, tell
        self._board = Board()
        self._notes: dict[str | None, Note] = {}
        self._summary_closed = False
        self._hints: dict[str, str] = {}
        self._own: set[str] = set()
        self._opened: set[str] = set()
        self._ended: list[tuple[float, Card]] = []  # and when
        self._pages: list[asyncio.subprocess.Process] = []
        self._moved = 0.0
        self._dirty = asyncio.Event()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = Server(self._clicked, self._closed, self._server_changed)
        self._notices = Notices()
        self._feed = Feed(paths, heard=self._heard, there=self._daemon_there, failed=self._fail)

    async def run(self) -> None:
        """Until SIGTERM. Raises NoSession when there is no session bus, or when it goes away."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._end)
        await self._server.connect()
        self._feed.start()
        painter = loop.create_task(self._paint_until_over())
        painter.add_done_callback(self._done)
        self._start(self._session_ended())
        try:
            await self._over
        finally:
            self._feed.stop()
            # What is being drawn has no id yet by which it could be taken down.
            self._dirty.set()
            await asyncio.wait((painter,), timeout=_LAST_SECONDS)
            await self._take_all_down()
            for page in self._pages:
                if page.returncode is None:
                    page.terminate()
            for task in self._tasks:
                task.cancel()
            self._server.close()

    # What happens.

    def _heard(self, approval: pb.Approval) -> None:
        if approval.state in ("", "pending"):
            self._board.asked(approval)
        elif entry := self._board.ended(approval.id):
            self._tell("settled", {"approval": approval.id, "state": approval.state})
            if entry.seen and approval.id not in self._own:
                card = cards.settled(approval, here=approval.id in self._opened)
                self._ended.append((asyncio.get_running_loop().time(), card))
            self._own.discard(approval.id)
            self._opened.discard(approval.id)
            if not entry.questions:
                self._hints.pop(entry.key, None)
        self._dirty.set()

    def _daemon_there(self, there: bool) -> None:
        self._tell("daemon", {"running": there})
        # What waits is said anew by the daemon that comes back; buttons of one that is away would do nothing.
        self._board.clear()
        self._dirty.set()

    def _server_changed(self) -> None:
        about = self._server.about
        self._tell("server", {"name": about.name, "version": about.version} if about else {"name": ""})
        self._notes.clear()
        self._summary_closed = False
        self._board.reopen()
        self._dirty.set()

    def _closed(self, id: int) -> None:
        self._have_moved()  # also where another program's went: ours may stand below it
        note = self._note(id)
        if note is None:
            return
        del self._notes[note.key]
        if note.key is None:
            self._summary_closed = True
        elif entry := self._board.entry(note.key):
            entry.closed = True
        self._tell("closed", {"approval": note.asked[0].id if note.asked else ""})
        self._dirty.set()

    def _clicked(self, id: int, key: str) -> None:
        note = self._note(id)
        if note is None or not (key == DEFAULT or any(key == button.key for button in note.card.buttons)):
            return
        still = asyncio.get_running_loop().time() - self._moved >= _STILL_SECONDS
        # Servers take a notification away when it was clicked; where it is still wanted, it is drawn anew.
        del self._notes[note.key]
        self._have_moved()  # those below it take its place, under the pointer
        self._start(self._take_down(id))
        self._tell("clicked", {"approval": note.asked[0].id if note.asked else "", "button": key})
        if key == DENY:
            self._start(self._settle(note, note.asked, self._feed.deny, "Not denied"))
        elif key == ONCE and note.card.allows and cards.click_allows(note.asked[0]):
            if still:
                self._start(self._settle(note, note.asked[:1], self._feed.allow_once, "Not allowed"))
            elif note.key is not None:
                self._hints[note.key] = "That click came too soon after this appeared. Read it, then click again."
        else:
            self._start(self._open(note))
        self._dirty.set()

    # What a click does.

    async def _settle(self, note: Note, asked: Sequence[pb.Approval], how: Answer, failed: str) -> None:
        entry = self._board.entry(note.key) if note.key is not None else None
        if entry is not None:
            entry.busy = True
        for approval in asked:
            self._own.add(approval.id)
            try:
                await how(approval)
            except GoexError as error:
                self._own.discard(approval.id)
                await self._say(cards.words(failed, error.message, error.next_step))
        if entry is not None:
            entry.busy = False
        self._dirty.set()

    async def _open(self, note: Note) -> None:
        approval = note.asked[0].id if note.asked else ""
        entry = self._board.entry(note.key) if note.key is not None else None
        by_hand = f"In a terminal: goex approve {approval}".rstrip()
        try:
            page = terminal.page(approval, self._settings.terminal, self._env)
            if page is not None:
                await self._open_page(page, approval, entry)
                return
            words = [*terminal.find(self._settings.terminal, self._env), *terminal.command(approval)]
            if entry is not None:
                entry.busy = True
            self._opened.add(approval)
            began = asyncio.get_running_loop().time()
            process = await terminal.start(words, self._env)
            self._tell("opened", {"approval": approval})
            failed = await process.wait() and asyncio.get_running_loop().time() - began < _QUICK_SECONDS
            if failed and approval not in self._own and (entry is None or entry.questions):
                await self._say(cards.words("The terminal didn't open", by_hand))
        except GoexError as error:
            await self._say(cards.words("There is no terminal to open", error.message, error.next_step, by_hand))
        finally:
            # Undecided when the window closes: it is shown again.
            if entry is not None:
                entry.busy = False
            self._dirty.set()

    async def _open_page(self, words: Sequence[str], approval: str, entry: Entry | None) -> None:
        """Open the page. Its process stays for as long as this one where no page runs yet; what was opened isn't
        shown again."""
        self._opened.add(approval)
        process = await terminal.start(words, self._env)
        self._pages = [page for page in self._pages if page.returncode is None] + [process]
        self._tell("opened", {"approval": approval})
        with suppress(TimeoutError):
            if await asyncio.wait_for(process.wait(), _QUICK_SECONDS):
                await self._say(cards.words("The page didn't open", f"In a terminal: goex approve {approval}".rstrip()))
                return
        if entry is not None:
            entry.closed = True

    # The screen.

    async def _paint_until_over(self) -> None:
        while not self._over.done():
            await self._dirty.wait()
            await asyncio.sleep(_PAINT_SECONDS)
            self._dirty.clear()
            if self._over.done():
                return
            try:
                await self._paint()
            except NoServer as error:
                # It comes back, and then all is painted.
                self._tell("trouble", {"message": error.message})

    async def _paint(self) -> None:
        about = self._server.about
        if about is None:
            return
        wanted, left = self._board.wanted(self._settings.most)
        if left == 0:
            self._summary_closed = False
        keys = {entry.key for entry in wanted}
        for key, note in list(self._notes.items()):
            if key not in keys if key is not None else left == 0:
                del self._notes[key]
                self._have_moved()
                await self._take_down(note.id)
        for entry in wanted:
            await self._draw(entry)
        if left and not self._summary_closed:
            await self._place(None, cards.more(left), (), 0)
        await self._say_what_ended()

    async def _draw(self, entry: Entry) -> None:
        # It may have ended while another one was drawn.
        if not entry.questions or self._board.entry(entry.key) is not entry:
            return
        asked = tuple(entry.questions.values())
        drawn = cards.question(asked[0], count=len(asked))
        if hint := self._hints.get(entry.key):
            drawn = drawn.with_hint(hint)
        entry.seen = True
        await self._place(entry.key, drawn, asked, _left(asked[0].deadline) + _LINGER_SECONDS)

    async def _place(self, key: str | None, drawn: Card, asked: tuple[pb.Approval, ...], seconds: float) -> None:
        note = self._notes.get(key)
        ids = [approval.id for approval in asked]
        if note is not None and note.card == drawn and [approval.id for approval in note.asked] == ids:
            return
        if note is None or note.card != drawn:
            self._have_moved()
        replaced = note.id if note else 0
        id = await self._server.notify(drawn, replaces=replaced, seconds=seconds)
        self._notes[key] = Note(id, key, drawn, asked)
        self._have_moved()
        labels = [button.label for button in drawn.buttons]
        facts = {"approvals": ids, "title": drawn.title, "buttons": labels, "allows": drawn.allows, "notification": id}
        self._tell("shown", facts)

    async def _say_what_ended(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._ended:
            return
        first, last = self._ended[0][0], self._ended[-1][0]
        if loop.time() < min(last + _QUIET_SECONDS, first + _LONGEST_WAIT):
            loop.call_later(_QUIET_SECONDS, self._dirty.set)
            return
        ended, self._ended = [card for _, card in self._ended], []
        if len(ended) > _MOST_NOTICES:
            ended = [cards.many_settled(len(ended))]
        for drawn in ended:
            await self._say(drawn)

    async def _say(self, drawn: Card) -> None:
        self._tell("notice", {"title": drawn.title})
        if (about := self._server.about) is not None:
            self._have_moved()
            await self._notices.send(drawn, markup=about.markup)

    async def _take_down(self, id: int) -> None:
        await self._server.take_down(id)
        self._have_moved()

    def _have_moved(self) -> None:
        self._moved = asyncio.get_running_loop().time()

    async def _take_all_down(self) -> None:
        notes, self._notes = list(self._notes.values()), {}
        for note in notes:
            await self._server.take_down(note.id)
        await self._notices.clear()

    # The end.

    async def _session_ended(self) -> None:
        await self._server.disconnected()
        self._fail(NoSession("The desktop session has ended.", next_step="Elsewhere: goex approve --watch"))

    def _end(self) -> None:
        if not self._over.done():
            self._over.set_result(None)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        # A defect ends it all, loudly: questions that silently aren't shown any more would be worse.
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._over.done():
            self._over.set_exception(error)

    def _note(self, id: int) -> Note | None:
        return next((note for note in self._notes.values() if note.id == id), None)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)


def _left(deadline: str) -> float:
    """Seconds until then; a minute where it can't be read."""
    with suppress(ValueError, TypeError):
        return max((datetime.fromisoformat(deadline) - datetime.now(UTC)).total_seconds(), 0.0)
    return 60.0
