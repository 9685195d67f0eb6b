"""`make crash`: many more rounds than the tests do, at random moments. ARGS: rounds (default 200) and a seed."""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.crash.rounds import CallsRounds, FilesRounds, Found, Moment
from tests.services.synapse import Synapse, find_python
from tests.support.daemon import Daemon


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    python = find_python()
    if python is None:
        print("The homeserver's environment isn't there: run `make services`.", file=sys.stderr)
        return 1
    print(f"{rounds} rounds, seed {seed}", flush=True)
    dice = random.Random(seed)
    seen: Counter[tuple[str, str, str]] = Counter()
    bad: list[Found] = []
    with Synapse(python) as server, Daemon() as daemon, tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "work"
        folder.mkdir()
        kinds = (FilesRounds(daemon, folder), CallsRounds(daemon, server))
        for number in range(rounds):
            chosen = dice.choice(kinds)
            state = dice.choice((*chosen.states, "running", "running", "running"))
            back = state != "mapped" and dice.random() < 0.4
            moment = Moment(state, dice.choice(chosen.depths[back]) if state == "running" else 0)
            found = chosen.revert(moment) if back else chosen.execute(moment)
            seen[found.kind, found.hit, found.after] += 1
            if found.problems:
                bad.append(found)
            print(
                f"{number + 1:4} {found.kind:14} killed {found.hit:9} ({found.rows:2} rows) -> {found.after}",
                flush=True,
            )
            for problem in found.problems:
                print(f"     ! {problem}", flush=True)
    print("\n| action | killed in | afterwards | rounds |\n|---|---|---|---|")
    for (kind, hit, after), count in sorted(seen.items()):
        print(f"| {kind} | {hit} | {after} | {count} |")
    print(f"\n{rounds} rounds, {len(bad)} with a problem.")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
