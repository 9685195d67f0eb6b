"""What calls in JavaScript may change of the objects that they are given.

Rules: a call changes what it is given, unless it is followed or known to leave it as it is.
"""

from __future__ import annotations

from enum import Enum

from mapper.code.abstract_values import (
    Class,
    Form,
    Function,
    Json,
    Listed,
    Lit,
    Made,
    Method,
    Named,
    Stream,
    Text,
    Thing,
    Value,
)

_WRITING = frozenset({"assign", "defineProperty", "defineProperties", "setPrototypeOf", "set", "deleteProperty"})
# What leaves as they are the objects that it is given.
HARMLESS_GLOBALS = frozenset({
    "AbortController", "AbortSignal", "Array", "Blob", "Boolean", "Buffer", "Date", "Error", "FormData", "Headers",
    "Intl", "JSON", "Math", "Number", "Object", "Promise", "RangeError", "Reflect", "RegExp", "Request",
    "Response", "String", "Symbol", "TextDecoder", "TextEncoder", "TypeError", "URL", "URLSearchParams",
    "atob", "btoa", "clearInterval", "clearTimeout", "console", "decodeURIComponent", "encodeURI",
    "encodeURIComponent", "escape", "fetch", "isNaN", "parseFloat", "parseInt", "process",
    "queueMicrotask", "require", "setInterval", "setTimeout", "structuredClone",
})  # fmt: skip
HARMLESS_MODULES = frozenset({
    "@anthropic-ai/sdk", "@google-cloud/local-auth", "@googleapis/calendar", "@googleapis/docs", "@googleapis/drive",
    "@googleapis/gmail", "@googleapis/sheets", "@notionhq/client", "@octokit/core", "@octokit/graphql",
    "@octokit/plugin-retry", "@octokit/plugin-throttling", "@octokit/rest", "@slack/web-api", "assert", "axios",
    "cross-fetch", "crypto", "fs", "fs/promises", "google-auth-library", "googleapis", "got", "graphql-request", "http",
    "https", "ky", "node-fetch", "node-fetch-native", "octokit", "openai", "os", "path", "querystring", "stripe",
    "timers/promises", "undici", "url",
})  # fmt: skip

# What gives a text or a number, whatever it is given.
_GIVES_TEXT = frozenset({
    "String", "Number", "Boolean", "parseInt", "parseFloat", "encodeURIComponent", "encodeURI", "decodeURIComponent",
    "JSON.stringify", "Date.now", "btoa", "atob",
})  # fmt: skip


class Given(Enum):
    """What a call may change of what it is given: the first (`Object.assign` as it says), or anything."""

    ASSIGNED = "assigned"
    FIRST = "first"
    ALL = "all"


def changes_given(function: Value) -> Given | None:
    """What a call may change of what it is given; None where that is nothing, or is followed."""
    if isinstance(function, Method):  # the promise of an object is taken for the object
        of = function.of
        if isinstance(of, Method) and of.name == "searchParams":
            of = of.of  # an address's query takes texts
        followed = isinstance(of, Made | Listed | Stream | Lit | Text | Form | Json | Thing | Named)
        return None if followed or function.name in ("toString", "valueOf", "hasOwnProperty") else Given.ALL
    if isinstance(function, Named):
        if function.name.startswith("js:"):
            return None if function.name[3:].partition(".")[0] in HARMLESS_MODULES else Given.ALL
        root, _, rest = function.name.removeprefix("builtins.").removeprefix("globalThis.").partition(".")
        if root in ("Object", "Reflect") and rest in _WRITING:
            return Given.ASSIGNED if rest == "assign" else Given.FIRST
        harmless = root in HARMLESS_GLOBALS and rest.rpartition(".")[2] not in ("apply", "call", "construct", "bind")
        return None if harmless else Given.ALL
    return None if isinstance(function, Function | Class | Thing | Lit) else Given.ALL


def gives_text(function: Value) -> bool:
    """Whether a call gives a text or a number, which nobody can change."""
    return isinstance(function, Named) and function.name.removeprefix("builtins.") in _GIVES_TEXT
