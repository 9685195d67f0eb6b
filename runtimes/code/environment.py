"""What a program finds around itself in its container: the files of its job, and the variables that it sees.

Rules: nothing in either is a secret. The way out is a proxy on loopback, and the certificate that the gateway answers
with is the only one to trust: every common client is told of both by the variables that it reads. `run_code.py`, in
the image, reads what is written here (`JOB_FILE`): it offers the proxy, sets the variables, and becomes the program.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from policies.actions import Language
from policies.display_text import escape
from policies.errors import InvalidInput
from runtimes.sandbox.contract import Job

RUN = ("/usr/bin/python3", "-I", "-S", "/goex/bin/run_code.py")
FOLDER = "/goex/job"  # where the files of a job are
JOB_FILE, CA_FILE = "code.json", "ca.pem"
PROGRAMS: Mapping[Language, str] = {
    "python": "program.py",
    "shell": "program.sh",
    "javascript": "program.mjs",
}
COMMON_JS = "program.cjs"  # a JavaScript program without modules of its own kind
PORT = 3128  # of the proxy, on the container's own loopback
CA = f"{FOLDER}/{CA_FILE}"

_MODULE = re.compile(r"^[^\S\n]*(?:import|export)\b", re.MULTILINE)
_REQUIRES = re.compile(r"\brequire\(|\bmodule\.exports\b|\b__dirname\b")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")


def _proxies() -> dict[str, str]:
    proxy = f"http://127.0.0.1:{PORT}"
    # Lower case for curl, wget, Python; upper case for Go, Node and slack_sdk. Nothing goes past the proxy, not even to
    # localhost: a service there is one of the person's own accounts.
    names = ("http_proxy", "https_proxy", "all_proxy")
    made = {spelt: proxy for name in names for spelt in (name, name.upper())}
    return made | {"no_proxy": "", "NO_PROXY": ""}


def _certificates() -> dict[str, str]:
    names = (
        "SSL_CERT_FILE",  # OpenSSL, Python's ssl, httpx, Go, Rust's native-certs
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "GIT_SSL_CAINFO",
        "AWS_CA_BUNDLE",
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
        "HTTPLIB2_CA_CERTS",  # google-api-python-client
        "WEBSOCKET_CLIENT_CA_BUNDLE",
        "PIP_CERT",
        "npm_config_cafile",
        "DENO_CERT",
        "CARGO_HTTP_CAINFO",
    )
    return dict.fromkeys(names, CA)


# What clients read beside those two.
_MANNERS = {
    "NODE_OPTIONS": "--require=/goex/lib/proxy.cjs",  # node's own fetch takes no notice of proxy variables
    "NODE_USE_ENV_PROXY": "1",  # from node 24 on it does, when told to
    "NO_GCE_CHECK": "true",  # there is no metadata server to look for
    "AWS_EC2_METADATA_DISABLED": "true",
    "GOOGLE_API_USE_MTLS_ENDPOINT": "never",
    "GIT_TERMINAL_PROMPT": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}

VARIABLES: Mapping[str, str] = _proxies() | _certificates() | _MANNERS


def job(
    *,
    action_id: str,
    language: Language,
    program: str,
    ca_pem: str,
    socket_dir: str,
    env: Mapping[str, str],
    files: Mapping[str, str] | None = None,
) -> Job:
    """The job that runs `program`. `env` are variables of its own (its placeholders), beside VARIABLES; `files` by
    their plain names, at FOLDER (credentials that hold placeholders). Raises InvalidInput for a name that can't be one,
    or that is taken, and for a text that isn't Unicode."""
    own = {JOB_FILE, CA_FILE, COMMON_JS, *PROGRAMS.values()}
    file = PROGRAMS[language]
    if language == "javascript" and _REQUIRES.search(program) and not _MODULE.search(program):
        file = COMMON_JS
    for name in files or {}:
        if not _FILE_NAME.match(name) or name in own:
            raise InvalidInput(f"{escape(name[:60])!r} can't be the name of a file beside a program.")
    for name, value in env.items():
        if not _ENV_NAME.match(name) or name in VARIABLES or "\0" in value:
            raise InvalidInput(f"{escape(name[:60])!r} can't be a variable of a program's own.")
    told = {
        "language": language,
        "program": file,
        "port": PORT,
        "env": {**VARIABLES, **env},
    }
    own_files = {
        JOB_FILE: json.dumps(told).encode(),
        CA_FILE: ca_pem.encode(),
        file: _utf8(program),
    }
    given = {name: _utf8(text) for name, text in (files or {}).items()}
    return Job(action_id=action_id, argv=RUN, files=given | own_files, socket_dir=socket_dir)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput("The program's text holds half a character.", next_step="Send it as UTF-8.") from error
