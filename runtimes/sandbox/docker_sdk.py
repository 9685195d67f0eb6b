"""Docker's SDK, loaded without what it makes requests load for nothing."""

from __future__ import annotations

import sys
import warnings


def _load_requests() -> None:
    """Load requests, by which the Docker SDK sends, without charset-normalizer: that guesses the encoding of a text
    whose server doesn't say it, which is of no use for Docker's JSON and a login server's, and takes 3.5 MB."""
    if "requests" in sys.modules or "charset_normalizer" in sys.modules:
        return
    sys.modules["charset_normalizer"] = None  # type: ignore[assignment]  # as if it weren't installed
    try:
        with warnings.catch_warnings(action="ignore"):  # requests says that it is missing
            import requests  # noqa: F401
    finally:
        del sys.modules["charset_normalizer"]


_load_requests()

import docker as docker  # noqa: E402
from docker import APIClient as APIClient  # noqa: E402
