"""What a daemon loads only when it is first asked for it."""

from __future__ import annotations

import json
import subprocess
import sys

LATE = (
    "goex.daemon.accounts_service",
    "goex.daemon.databases_service",
    "runtimes.code.runtime",
    "runtimes.rest.runtime",
    "runtimes.servers.runtime",
    "runtimes.sql.runtime",
    "runtimes.gateway.client",
    "runtimes.mongo.runtime",
    "mapper.manifest",
    "mapper.validation",
    "jsonpath_rfc9535",
    "jsonschema",
    "charset_normalizer",
    "git",
    "authlib",
    "openai",
    "pymongo",
    "sqlglot",
    "numpy",
    "tree_sitter",
)


def test_a_daemon_starts_without_what_few_of_them_need() -> None:
    listed = "import goex.daemon.app, json, sys; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.run([sys.executable, "-P", "-c", listed], check=True, capture_output=True).stdout)
    assert not set(LATE) & set(loaded)
