"""The model's client takes a second to load: whoever configured no model doesn't wait for it."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = """
    import json, sys
    from pathlib import Path

    from goex.config import load
    from goex.daemon.app import App
    from goex.paths import Paths

    home = Path(sys.argv[1])
    paths = Paths(config_dir=home / "config", state_dir=home / "state", run_dir=home / "run")
    paths.create()
    mapper = App(paths, load(paths.config_file), lambda: None)._the_mapper()
    print(json.dumps([mapper.model is not None, "openai" in sys.modules]))
"""


@pytest.mark.parametrize(
    ("config", "loads"),
    [("", False), ('[model]\nbase_url = "https://llm.example.org/v1"\nname = "some-model"\n', True)],
    ids=["without a model", "with a model"],
)
def test_the_models_client_is_loaded_for_a_model_alone(tmp_path: Path, config: str, loads: bool) -> None:
    folder = tmp_path / "config"
    folder.mkdir(mode=0o700)
    file = folder / "config.toml"
    file.write_text(config)
    file.chmod(0o600)
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [loads, loads]
