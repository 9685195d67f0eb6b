"""Where the published data lies, if it is there: the project holds none of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT.parent / "shared" / "data"


@pytest.fixture
def data() -> Callable[[str], Path]:
    """The path of a published file; skips when it isn't there."""

    def find(name: str) -> Path:
        file = DATA / name
        if not file.is_file():
            pytest.skip(f"{name} isn't there: published data, which the project doesn't hold")
        return file

    return find


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file of one JSON value (or one raw text) a line."""
    import json

    def write(name: str, *values: object) -> Path:
        file = tmp_path / name
        file.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in values))
        return file

    return write
