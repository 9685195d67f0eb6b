"""The drawing of space, over a small folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.plots import space


@pytest.mark.thorough
def test_a_tiny_run_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "space.svg"
    assert space.main(["--files", "500", "--actions", "4", "--out", str(out)]) == 0
    assert "Its snapshots:" in capsys.readouterr().out
    drawn = out.read_text()
    assert "a copy for each" in drawn and "the folder itself" in drawn
