"""`make soak`: ten thousand actions, asked for by agents of a real daemon, eight at a time; nothing of them is left.

Each is a program on a standing grant (`mixture` says which), in a container that waited, whose requests pass the
gateway's process to a service of this machine. What there is of everything (`leftovers`) is counted after the first few
and shown as it goes on. When all have ended there must be nothing more than after the first few, and over the second
half no memory may have grown with the actions. What grows is the state database, which keeps what was done.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial

from runtimes.sandbox import images
from tests.support.daemon import Daemon
from tools.bench.leftovers import Looker, Seen, growing, remaining, slopes
from tools.bench.mixture import CONFIG, Agents
from tools.bench.upstream import upstream

AT_ONCE = 8
AGENTS = 20  # since the person is asked about one that has more than 120 actions in a minute
FIRST = 200  # actions after which all that is made once has been made
EVERY = 250  # actions between two marks
SETTLES = 60.0  # seconds in which what goes by itself has gone;
SOON = 5.0  # and in which it mostly has, between two marks


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 1 when something is left."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--actions", type=int, default=10_000, help="how many (default: 10000)")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long, whatever was reached")
    wanted = parser.parse_args(argv)
    if os.geteuid() != 0:
        parser.error("only root can count what the daemon has open: run it as root")
    with soaking() as soak:
        marks, problems = soak.run(wanted.actions, FIRST, wanted.minutes * 60, partial(print, flush=True))
    for problem in problems:
        print(f"left: {problem}")
    grown = [f"{name} {slope:+.2f} kB" for name, slope in slopes(marks).items()]
    grown.append(f"state {(marks[-1].numbers['state'] - marks[0].numbers['state']) / marks[-1].actions:+.2f} kB")
    print(f"{marks[-1].actions} actions; an action: {', '.join(grown)}")
    print("see above" if problems else "nothing of them is left")
    return 1 if problems else 0


@dataclass(frozen=True, slots=True)
class Soak:
    """A daemon, those who ask it for actions, and one who looks at what there is."""

    daemon: Daemon
    looker: Looker
    pool: ThreadPoolExecutor
    agents: Agents

    def run(
        self, actions: int, first: int = FIRST, seconds: float = 3600.0, say: Callable[[str], object] = print
    ) -> tuple[list[Seen], list[str]]:
        """Have so many actions done, fewer when the time is over. Returns what there was at each mark, the earliest
        after `first` actions, and what is left. Raises AssertionError for an action that ended otherwise than it must.
        """
        until = time.monotonic() + seconds
        done = min(first, actions)
        self._act(0, done, say)
        marks = [still(self.looker, done)]
        say(marks[0].line())
        while done < actions and time.monotonic() < until:
            start, done = done, min(done + EVERY, actions)
            self._act(start, done, say)
            last = done == actions or time.monotonic() > until
            marks.append(settled(self.looker, done, marks[0], SETTLES if last else SOON))
            more = remaining(marks[0], marks[-1])
            say("; ".join((marks[-1].line(), *more)))
        return marks, remaining(marks[0], marks[-1]) + growing(marks)

    def _act(self, start: int, end: int, say: Callable[[str], object]) -> None:
        began = time.monotonic()
        for _ in self.pool.map(self.agents.act, range(start, end)):
            pass
        say(f"{end} actions, {(end - start) / (time.monotonic() - began):.1f} a second")


@contextmanager
def soaking(agents: int = AGENTS) -> Iterator[Soak]:
    """A daemon with so many agents that have their standing grants, as long as the block lasts."""
    for image in ("base", "code"):
        images.build(image)
    marker = f"goex-soak-{os.getpid()}"
    with (
        upstream() as service,
        Daemon(config=CONFIG, fresh=True) as daemon,
        closing(Looker(daemon, marker)) as looker,
        ThreadPoolExecutor(AT_ONCE) as pool,
        closing(Agents(daemon, service, marker, agents)) as asking,
    ):
        yield Soak(daemon, looker, pool, asking)


def still(looker: Looker, actions: int) -> Seen:
    """What there is when no action's container, program or mount is left, and nothing else comes or goes."""
    until = time.monotonic() + SETTLES
    seen = looker.look(actions)
    while True:
        before, seen = seen, looker.look(actions)
        moves = remaining(before, seen) + remaining(seen, before)
        taken = [found for name in ("containers", "programs", "mounts") for found in seen.things[name]]
        if not moves and not taken:
            return seen
        assert time.monotonic() < until, f"it doesn't come to rest: {moves or taken}"
        time.sleep(0.5)


def settled(looker: Looker, actions: int, first: Seen, seconds: float) -> Seen:
    """What there is when there is no more than at first, or when the time is over."""
    until = time.monotonic() + seconds
    while remaining(first, seen := looker.look(actions)) and time.monotonic() < until:
        time.sleep(0.2)
    return seen


if __name__ == "__main__":
    sys.exit(main())
