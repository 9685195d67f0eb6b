"""What services answer when a token lacks a scope, in the forms of RFC 6750, Slack, Dropbox, Spotify and Google."""

from __future__ import annotations

from typing import Any

import pytest

from runtimes.rest.outcomes import MAX_SAID, missing_scopes

SOMETHING = "a permission that this call needs"
GOOGLE = {"reason": "ACCESS_TOKEN_SCOPE_INSUFFICIENT", "metadata": {"service": "gmail.googleapis.com"}}


@pytest.mark.parametrize(
    ("body", "lacking"),
    [
        (
            {"ok": False, "error": "missing_scope", "needed": "reactions:write", "provided": "chat:write"},
            "reactions:write",
        ),
        ({"error": "insufficient_scope", "scope": "read  write"}, "read write"),
        (
            {"error_summary": "missing_scope/.", "error": {".tag": "missing_scope", "required_scope": "files.read"}},
            "files.read",
        ),
        ({"error": {"status": 403, "message": "Insufficient client scope"}}, SOMETHING),
        ({"error": {"code": 403, "status": "PERMISSION_DENIED", "details": [{}, GOOGLE]}}, SOMETHING),
        ({"error": {"errors": [{"reason": "insufficientPermissions"}]}}, SOMETHING),
        ({"error": "insufficient_scope", "scope": ["a", "b"]}, "a b"),
        # Not that: another reason, a text about it, what lies too deep, or no object.
        ({"ok": False, "error": "channel_not_found", "needed": "x"}, None),
        ({"message": "the error is called missing_scope"}, None),
        ({"error": {"error": {"error": {"error": {"error": "missing_scope"}}}}}, None),
        ({"data": {"name": "missing_scope"}}, None),
        (["missing_scope"], None),
        (None, None),
    ],
)
def test_what_a_refusal_says(body: Any, lacking: str | None) -> None:
    assert missing_scopes(body) == lacking


def test_it_is_as_long_as_other_words_of_a_service() -> None:
    said = missing_scopes({"error": "missing_scope", "needed": "x" * 10_000})
    assert said is not None and len(said) <= MAX_SAID + 1
