"""A shell command of a coding agent's client: what its words hide is permitted by nobody's rule about a folder."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from goex.daemon.tool_calls import judged
from goex.engine.core import Principal
from goex.rpc import goex_pb2 as pb
from mapper.code.folder_shell import FolderShell, read_folder_shell
from policies.limits import NOT_CONFINED, Confinement
from policies.rules.book import RuleBook
from policies.rules.facts import NO_CATALOG, Situation

RULES = """
@id("project") permit (principal == Agent::"claude", action == Action::"tool", resource in Folder::"/home/me/project");
@id("keys") forbid (principal, action, resource in Folder::"/home/me/.ssh");
"""
KEY = "/home/me/.ssh/id_ed25519"
MANY = " ".join(f"./f{number}" for number in range(16))
CONFINED = Confinement(folders=("/home/me/project",))


class HereReader:
    async def read_folder_shell(self, program: str, folder: str, agent: str) -> FolderShell:
        return read_folder_shell(program, folder)


async def verdict(command: str, confined: Confinement = NOT_CONFINED) -> str:
    counts = SimpleNamespace(situation=lambda agent, session: Situation(), until=lambda agent, session: None)
    book = RuleBook.of({"a.cedar": RULES})
    core: Any = SimpleNamespace(
        rules=SimpleNamespace(require_read=lambda: None, counts=counts, book=book),
        settings=SimpleNamespace(confinement=confined),
        catalog=NO_CATALOG,
        clock=lambda: datetime.now(UTC),
        runtimes={"files": object()},
        check_named=lambda principal: None,
    )
    request = pb.JudgeRequest(tool="Bash", kind="shell", folder="/home/me/project", program=command)
    reader: Any = HereReader()
    return (await judged(core, reader, request, Principal(agent="claude", session="s", source=""))).verdict


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")


@pytest.mark.promise(14)
@pytest.mark.parametrize(
    "command",
    [
        f"cat {KEY}", "cat ~/.ssh/id_ed25519", f"dd if={KEY}", f"cat --file={KEY}", f"cat <{KEY}",
        "cat ../.ssh/id_ed25519", f"scp a:{KEY} .", f"tar -cf a.tar --exclude=x,{KEY}",
    ],
)  # fmt: skip
async def test_what_is_forbidden_is_forbidden_however_its_path_is_written(command: str) -> None:
    assert await verdict(command) == "forbid"


@pytest.mark.promise(14)
@pytest.mark.parametrize(
    "command",
    [
        "cat ~me/.ssh/id_ed25519", "cat $HOME/.ssh/id_ed25519", "cd ..; cat .ssh/id_ed25519", "cd ~ && cat .ssh/x",
        'cat "/home/me/.ssh"/id_ed25519', "cat /home/me/.s\\sh/x", "cat /home/me/.ss'h'/x", "cat /home/me/.ss?/x",
        "cat /home/{me,x}/.ssh/x", "cat $(echo L2hvbWU= | base64 -d)/x", "cat `pwd`/../.ssh/x", "eval cat x",
        f"cat {MANY} ./more", "pushd /home; cat me/.ssh/x",
        "cat 'unended", "cat $'/home/me/.ssh/x'", "cat */../../.ssh/x",
    ],
)  # fmt: skip
async def test_what_its_words_hide_is_not_permitted(command: str) -> None:
    assert await verdict(command) not in ("permit", "instead")
    assert await verdict(command, CONFINED) in ("ask", "forbid")


@pytest.mark.parametrize(
    "command", ["make", "cat a b/c", "ls src/*.py", "grep -r 'two words' docs > out.txt", "rm ./a"]
)
async def test_what_is_written_out_is_permitted(command: str) -> None:
    assert await verdict(command) == "permit"
    assert await verdict(command, CONFINED) == "permit"


@pytest.mark.promise(15)
async def test_no_path_is_dropped_behind_others() -> None:
    for command in (f"rm -rf /home/me/other/x {MANY}", f"rm -rf {MANY} /home/me/other/x", "rm -rf ~/other/x"):
        assert await verdict(command, CONFINED) in ("ask", "forbid")
