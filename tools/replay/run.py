"""`make replay`: installs AgentDojo and BFCL into an environment of their own, and replays their ground truth.

Neither is a dependency of GoEx: both live in `.cache/replay`, AgentDojo with what it needs, BFCL as its wheel alone, of
which only data files are read. Where they can't be installed nothing is replayed, and nothing is written.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "replay"
AGENTDOJO, BFCL = "agentdojo==0.1.35", "bfcl-eval==2026.3.23"


def installed() -> Path:
    """The folder that both are in. Raises CalledProcessError where a package index doesn't give them."""
    done = CACHE / ".done"
    if not done.exists():
        print(f"==> replay: {AGENTDOJO} and {BFCL} into {CACHE.relative_to(ROOT)}", flush=True)
        shutil.rmtree(CACHE, ignore_errors=True)
        python = CACHE / "dojo" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", CACHE / "dojo"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", AGENTDOJO], check=True)
        download = ["download", "--quiet", "--no-deps", BFCL, "-d", str(CACHE / "bfcl")]
        subprocess.run([python, "-m", "pip", *download], check=True)
        done.touch()
    return CACHE


def main() -> int:
    """Replay; 0 also where it was skipped."""
    try:
        cache = installed()
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"make replay is skipped: {AGENTDOJO} and {BFCL} can't be installed ({error}).", file=sys.stderr)
        return 0
    cases = cache / "agentdojo.json"
    with cases.open("wb") as file:
        script = Path(__file__).with_name("agentdojo_cases.py")
        subprocess.run([cache / "dojo" / "bin" / "python", script], stdout=file, check=True)
    (wheel,) = (cache / "bfcl").glob("bfcl_eval-*.whl")
    return subprocess.run([sys.executable, "-m", "tools.replay", cases, wheel], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
