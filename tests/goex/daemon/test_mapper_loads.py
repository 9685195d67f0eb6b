"""The model's client takes a second to load: whoever configured no model doesn't wait for it."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.support.daemon import Daemon

PROGRAM = """
    import json, sys
    from pathlib import Path

    from goex.config import load
    from goex.daemon.app import App
    from goex.paths import Paths

    home = Path(sys.argv[1])
    paths = Paths(config_dir=home / "config", state_dir=home / "state", run_dir=home / "run")
    paths.create()
    paths.config_file.touch(mode=0o600)
    found = []
    for config in ("", '[model]\\nbase_url = "https://llm.example.org/v1"\\nname = "some-model"\\n'):
        paths.config_file.write_text(config)
        mapper = App(paths, load(paths.config_file), lambda: None)._the_mapper()
        found.append([mapper.model is not None, "openai" in sys.modules])
    print(json.dumps(found))
"""


def test_the_models_client_is_loaded_for_a_model_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[False, False], [True, True]]


# As where GoEx was installed without its extra `model`.
WITHOUT = """
from importlib.machinery import PathFinder

found = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name == "openai" else found(name, *rest)
"""


def test_a_daemon_without_the_models_client_says_how_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    config = '[model]\nbase_url = "http://127.0.0.1:9/v1"\nname = "some-model"\n'
    with Daemon(env={"PYTHONPATH": str(tmp_path)}, config=config) as daemon:
        done = daemon.goex("map", "send slack msg hi to #ops")
        assert done.returncode == 8
        assert "The model some-model needs the Python package openai" in done.stderr
        assert "pipx inject goex openai" in done.stderr and "pip install 'goex[model]'" in done.stderr
        assert "pipx inject goex openai" in daemon.goex("doctor", "--quick").stdout
