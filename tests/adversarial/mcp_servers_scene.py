"""A service on loopback that keeps what it is sent, and says the credential back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.runtimes.rest.support import Hit, Service, serving


class _Keeping(Service):
    def __init__(self) -> None:
        super().__init__()
        self.got: list[dict[str, str]] = []

    def handle(self, hit: Hit) -> tuple[int, Any]:
        self.got.append(dict(hit.headers))
        return 200, {"echo": hit.headers.get("authorization", "")}


@dataclass
class Collector:
    """Where it is, and what it got."""

    url: str
    ca_pem: str
    got: list[dict[str, str]] = field(default_factory=list)

    def answer(self, headers: dict[str, str]) -> str:
        """What it says to such a request."""
        return json.dumps({"echo": headers.get("authorization", "")})


@contextmanager
def collecting(folder: Path) -> Iterator[Collector]:
    folder.mkdir()
    service = _Keeping()
    with serving(service, folder):
        yield Collector(service.url, service.ca_pem, service.got)
