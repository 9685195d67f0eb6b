"""A shell command of a coding agent's client: what its words hide is permitted by nobody's rule about a folder."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from goex.daemon import hook_paths, tool_calls
from goex.daemon.tool_calls import judged
from goex.engine.core import Principal
from goex.rpc import goex_pb2 as pb
from mapper.code.folder_shell import FolderShell, read_folder_shell
from policies.limits import NOT_CONFINED, Confinement
from policies.rules.book import RuleBook
from policies.rules.facts import NO_CATALOG, Situation
from runtimes.code.reader import Reader
from tests.support.forks import Fork, ForkServer

RULES = """
@id("project") permit (principal == Agent::"claude", action == Action::"tool", resource in Folder::"/home/me/project");
@id("keys") forbid (principal, action, resource in Folder::"/home/me/.ssh");
"""
ALL = '@id("all") permit (principal == Agent::"claude", action == Action::"tool", resource);'
KEY = "/home/me/.ssh/id_ed25519"
MANY = " ".join(f"./f{number}" for number in range(32))
CONFINED = Confinement(folders=("/home/me/project",))


def but(kept: Path) -> str:
    """Rules that permit all but what is kept."""
    return f'{ALL}@id("kept") forbid (principal, action, resource in Folder::"{kept}");'


@lru_cache(4)
def book_of(rules: str) -> RuleBook:
    return RuleBook.of({"a.cedar": rules})


class HereReader:
    async def read_folder_shell(self, program: str, folder: str, agent: str) -> FolderShell:
        return read_folder_shell(program, folder)


async def verdict(
    command: str,
    confined: Confinement = NOT_CONFINED,
    folder: str = "/home/me/project",
    rules: str = RULES,
    path: str = "",
    tool: str = "Bash",
    home: str = "/home/me",
    agent: str = "claude",
    looks: bool = True,
) -> str:
    counts = SimpleNamespace(situation=lambda agent, session: Situation(), until=lambda agent, session: None)
    core: Any = SimpleNamespace(
        rules=SimpleNamespace(require_read=lambda: None, counts=counts, book=book_of(rules)),
        settings=SimpleNamespace(confinement=confined),
        catalog=NO_CATALOG,
        clock=lambda: datetime.now(UTC),
        runtimes={"files": object()},
        check_named=lambda principal: None,
    )
    request = pb.JudgeRequest(tool=tool, kind="shell", folder=folder, program=command, home=home)
    if path:
        request = pb.JudgeRequest(tool="Write", kind="write", folder=folder, paths=[path])
    reader: Any = HereReader()
    asks = Principal(agent=agent, session="s", source="")
    return (await judged(core, reader, request, asks, looks=looks)).verdict


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr(hook_paths, "SECONDS", 10.0)  # a busy machine takes long to start the process that looks


class Look:
    """A fork that looks, as `tool_calls` takes a process of asyncio's."""

    def __init__(self, fork: Fork, given: int) -> None:
        self._fork = fork
        self.stdin = self
        self.write = partial(os.write, given)
        self.write_eof = partial(os.close, given)
        self.stdout = asyncio.StreamReader(limit=2**20)
        self.kill = fork.kill

    @property
    def returncode(self) -> int | None:
        return self._fork.poll()

    async def wait(self) -> int:
        return self._fork.wait()


@pytest.fixture(scope="module")
def look_forks() -> Iterator[ForkServer]:
    with ForkServer("look") as server:
        yield server


@pytest.fixture
def looks(look_forks: ForkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks is a fork; that it is started as a person's daemon starts it is seen in the tests without this."""

    async def started() -> Look:
        read, given = os.pipe()
        out, said = os.pipe()
        try:
            look = Look(look_forks.start([read, said, 2], env={"LC_ALL": "C.UTF-8"}, folder=Path("/")), given)
        finally:
            os.close(read)
            os.close(said)
        protocol = asyncio.StreamReaderProtocol(look.stdout)
        await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(out, "rb"))
        return look

    monkeypatch.setattr(tool_calls, "_started", started)


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


@pytest.mark.sampled(10)
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


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """What is kept elsewhere, and where it is mounted in a folder of the agent's."""
    kept, project = tmp_path / "kept", tmp_path / "project"
    for folder in (kept, project / "in"):
        folder.mkdir(parents=True)
    if os.geteuid() != 0 or subprocess.run(["mount", "--bind", kept, project / "in"], check=False).returncode:
        pytest.skip("may not mount here")
    yield kept, project
    subprocess.run(["umount", project / "in"], check=True)


@pytest.mark.promise(15)
@pytest.mark.parametrize("made", [True, False])
async def test_what_is_mounted_in_a_folder_is_what_it_is_elsewhere(mounted: tuple[Path, Path], made: bool) -> None:
    kept, project = mounted
    if made:
        (kept / "a").write_text("x")
    project_only = ALL.replace("resource)", f'resource in Folder::"{project}")')
    confined = Confinement(folders=(str(project),))
    for inner, command, path in (
        (project / "in", "ls", ""),
        (project, "cat in/a", ""),
        (project, "", str(project / "in" / "a")),
        (project, "", str(project / "in" / "new" / "a")),
    ):
        say = partial(verdict, command, folder=str(inner), path=path)
        assert await say(confined, rules=ALL) == "forbid"
        assert await say(rules=but(kept)) == "forbid"
        assert await say(rules=project_only) == "permit", "by its own path it is"
    assert await verdict("ls", confined, folder=str(project), rules=but(kept)) == "permit"


@pytest.fixture
def closed(mounted: tuple[Path, Path]) -> Iterator[tuple[Path, Path]]:
    """As `mounted`, for a daemon of a user who may not look into the agent's folders."""
    kept, project = mounted
    (project / "link").symlink_to(kept)
    project.parent.chmod(0o700)
    os.seteuid(1000)
    yield kept, project
    os.seteuid(0)


async def test_what_is_mounted_where_the_daemon_may_not_look(closed: tuple[Path, Path]) -> None:
    kept, project = closed
    confined = Confinement(folders=(str(project),))
    for command, path in (("cat in/a", ""), ("", str(project / "in" / "a")), ("cat in/new/a", "")):
        say = partial(verdict, command, folder=str(project), path=path)
        assert await say(rules=but(kept)) == "forbid"
        assert await say(confined, rules=ALL) == "forbid"
    for command in ("cat link/a", "cat ./a"):  # which may be a link as well
        assert await verdict(command, folder=str(project), rules=ALL) == ""
        assert await verdict(command, confined, folder=str(project), rules=ALL) == "ask"


@pytest.fixture
def deep(mounted: tuple[Path, Path]) -> Iterator[str]:
    """A folder of the project, reached by links alone: its real path is too long for one."""
    _, project = mounted
    name, inner = "d" * 250, os.open(project, os.O_RDONLY)
    for _ in range(20):
        os.mkdir(name, dir_fd=inner)
        above, inner = inner, os.open(name, os.O_RDONLY, dir_fd=inner)
        os.close(above)
    os.close(inner)
    (project / "half").symlink_to("/".join([name] * 10))
    (project / "deep").symlink_to("half/" + "/".join([name] * 8))
    yield f"deep/{name}"
    subprocess.run(["rm", "-rf", project / name], check=True)


async def test_a_place_that_cannot_be_looked_at_hides_no_other(mounted: tuple[Path, Path], deep: str) -> None:
    kept, project = mounted
    for command in (f"cat in/a {deep}", f"cat {deep} in/a"):
        assert await verdict(command, folder=str(project), rules=but(kept)) == "forbid"
    assert await verdict(f"cat {deep}", folder=str(project), rules=but(kept)) == ""


async def test_where_a_link_leads_is_judged_too(tmp_path: Path, looks: None) -> None:
    kept, project = tmp_path / "kept", tmp_path / "project"
    for folder in (kept, project / "own"):
        folder.mkdir(parents=True)
    for name, target in (("to", kept), ("file", kept / "new"), ("twice", "own/../to"), ("within", "own")):
        (project / name).symlink_to(target)
    confined = Confinement(folders=(str(project),))
    for command in ("cat to/a", "ls ./to", "ls to", "cat file", "cat ./file", "cat twice/a/b", f"cat {project}/to"):
        assert await verdict(command, folder=str(project), rules=but(kept)) == "forbid"
        assert await verdict(command, confined, folder=str(project), rules=ALL) == "forbid"
    for command in ("cat to/../kept/a", "cat ./to/./../kept/a", "grep -f to/../kept/a own/b"):
        assert await verdict(command, folder=str(project), rules=but(kept)) == "forbid"
        assert await verdict(command, confined, folder=str(project), rules=ALL) == "forbid"
    for command in ("cat new/../to/a", "cat own/../new/../../kept"):  # may be made meanwhile
        assert await verdict(command, folder=str(project), rules=ALL) == ""
        assert await verdict(command, confined, folder=str(project), rules=ALL) in ("ask", "forbid")
    for command in (
        "cat own/../own/a",
        "cat within/a",
        "cat ./new",
        "cat own/a/b",
        "cat own",
        "echo 'a text, with " + "words " * 60 + "'",
    ):
        assert await verdict(command, confined, folder=str(project), rules=but(kept)) == "permit"


@pytest.fixture
def linked(tmp_path: Path, looks: None) -> tuple[Path, Path]:
    return linked_in(tmp_path)


def linked_in(above: Path) -> tuple[Path, Path]:
    """What is kept, and a project with links to it by names of many kinds."""
    kept, project = above / "kept", above / "project"
    for folder in (kept, project / "src" / "own"):
        folder.mkdir(parents=True)
    for name in ("passwd", "src/notes"):
        (kept / name).parent.mkdir(exist_ok=True)
        (kept / name).write_text("x")
    for name in ("README", "f", "src/a.py", "src/own/b.py"):
        (project / name).write_text("y")
    for name in ("link", "odd,one", "a b", "src/own/deep"):
        (project / name).symlink_to(kept)
    for name in ("pw", "-l", "1977", "pw2\udcff"):
        (project / name).symlink_to(kept / "passwd")
    return kept, project


@pytest.mark.sampled(10)
@pytest.mark.promise(14)
@pytest.mark.parametrize(
    "command",
    [
        "cat pw", "cp -t link f", "cp -tlink f", "sort -opw f", "tar -Clink -xf f", "tar -xzvfpw", "make -Clink",
        "grep -fpw f", "cat -- -l", "cat -- '-l'", "cat <-l", "cat p*", "cat p?", "cat P*", "cat */passwd",
        "cat l*/passwd", "rm -r l*/", "ls src/**/deep", "ls **/dee*", "cat ./*/passwd", "cp x odd,one",
        "rm -r odd,one/", "cp f --target-directory=odd,one", "cat 'a b'", "cat 'a b/passwd'", "cat 1977",
        "cat src/../pw", "cat link/../kept/passwd", "gcc -Ilink/x f", "curl -d @pw localhost", "tar -xzflink/a",
    ],
)  # fmt: skip
async def test_a_link_is_judged_however_it_is_spelled(command: str, linked: tuple[Path, Path]) -> None:
    kept, project = linked
    confined = Confinement(folders=(str(project),))
    assert await verdict(command, folder=str(project), rules=but(kept)) == "forbid"
    assert await verdict(command, confined, folder=str(project), rules=ALL) == "forbid"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "command", ["cat .*/x", "cat .?", "cat [a-z]*", "cat $((7))", f"tar -{'x' * 30}flink", "ls many/*", "cat links/*"]
)
async def test_what_a_glob_finds_may_not_be_known(command: str, linked: tuple[Path, Path]) -> None:
    _, project = linked
    for name, count in (("many", 10_001), ("links", 65)):
        if name in command:
            (project / name).mkdir()
            for number in range(count):
                (project / name / str(number)).symlink_to("../README")
    confined = Confinement(folders=(str(project),))
    assert await verdict(command, folder=str(project), rules=ALL) != "permit"
    assert await verdict(command, confined, folder=str(project), rules=ALL) in ("ask", "forbid")


async def test_a_long_command_says_the_same_of_its_globs() -> None:
    program = "cat p* a 'b c' src/*.py ../x\ndiff a b\n" * 20
    found = await Reader().read_folder_shell(program, "/work", "claude")
    assert found == read_folder_shell(program, "/work") and found.globs and found.files


@pytest.mark.promise(14)
async def test_a_path_with_what_parts_others_is_judged_whole(tmp_path: Path, looks: None) -> None:
    project, other = tmp_path / "project", tmp_path / "project:old"
    project.mkdir()
    confined = Confinement(folders=(str(project),))
    for mark in ":=,@":
        other = tmp_path / f"project{mark}old"
        other.mkdir()
        only = ALL.replace("resource)", f'resource in Folder::"{project}")')
        for command in (
            f"rm -r {other}/key",
            f"cat ../{other.name}/key",
            f"cat --file={other}/key",
            f"tar -C{other}",
            f"tar -xf{other}/a",
        ):
            say = partial(verdict, command, folder=str(project))
            assert await say(rules=but(other)) == "forbid"
            assert await say(confined, rules=ALL) == "forbid"
            assert await say(rules=only) == ""


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    "command",
    [
        "make test", "npm run build", "npm i @types/node react@18", "go test ./...", "cargo build --release",
        "pytest -q tests/a_test.py::test_b", ".venv/bin/pytest -x -k 'a or b'", "git status", "git diff HEAD~1..HEAD",
        "git log --oneline -n 20 origin/main..HEAD", "git commit -m 'Mend: a/b, c/d and so on'", "git add -A",
        "git commit -m 'a long text\n\n" + "of many words, and of a/b\n" * 12 + "'",
        "git add " + " ".join(f"f{n}.py" for n in range(70)), "git show HEAD:src/a.py", "git checkout -b fix/x",
        "grep -rn \"from '../../lib'\" src", "rg 'import x from \"../../utils\"'", "sed -i 's/x/../' f",
        "sed -n 1,20p src/a.py",
        "curl -d '{" + ",".join(f'"k{n}":{n}' for n in range(40)) + "}' localhost", "ls -la", "ls src/*.py src/**/*.py",
        "cat src/../README",
        "tar -czf a.tgz src", "find . -name '*.py' -not -path './node_modules/*'", "ruff check --select=E,F src",
        "mkdir -p src/new/inner", "grep -rn --include=*.py 'def f' src", "head -50 README | tail -n 5",
        "docker compose up -d --build", "gcc -O2 -Wall -Isrc/own -o a.out src/a.c", "tsc --outDir src/../dist",
        "jq '.a | .b' f.json", "wc -l *.py f", "cp README README.old && mv README.old src/", "echo 'x: y' >> notes.txt",
        "awk '{print $1, $2}' f", "cmp README src/a.py 2>&1 | head", "kill -9 123",
        "rm -rf -- dist build", "cat <<'E' > src/new.py\nfrom ..x import y\nE",
    ],
)  # fmt: skip
async def test_usual_commands_stay_permitted(command: str, linked: tuple[Path, Path]) -> None:
    _, project = linked
    confined = Confinement(folders=(str(project),))
    only = ALL.replace("resource)", f'resource in Folder::"{project}")')
    assert await verdict(command, folder=str(project), rules=only) == "permit"
    assert await verdict(command, confined, folder=str(project), rules=only) == "permit"


async def test_a_folder_that_is_reached_by_a_link_has_no_more_of_them(linked: tuple[Path, Path]) -> None:
    kept, project = linked
    alias = project.parent / "alias"
    alias.symlink_to(project)
    for number in range(80):
        (project / "src" / f"n{number}.py").touch()
    confined = Confinement(folders=(str(alias), str(project)))
    for command, said in (("cat README", "permit"), ("wc -l src/*.py", "permit"), ("cat pw", "forbid")):
        assert await verdict(command, confined, folder=str(alias), rules=but(kept)) == said
        assert await verdict(command.replace("p", "p*", 1), confined, folder=str(alias), rules=but(kept)) == said


async def test_what_a_bare_word_names_is_forbidden_by_itself(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "secrets").mkdir(parents=True)
    (project / "key.pem").touch()
    for kept in ("secrets", "key.pem"):
        for command in (f"rm -r {kept}", f"cp -r {kept} copy", f"cat < {kept}"):
            assert await verdict(command, folder=str(project), rules=but(project / kept)) == "forbid"
    own = f'@id("own") permit (principal, action == Action::"tool", resource == Folder::"{project}");'
    assert await verdict("ls secrets", folder=str(project), rules=own) == "permit"
    assert await verdict("echo 'no secrets here'", folder=str(project), rules=but(project / "secrets")) == "permit"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "root", ["self/root", "thread-self/root", f"{os.getpid()}/root"], ids=["self", "thread", "number"]
)
async def test_what_is_another_in_every_process_is_not_known(tmp_path: Path, root: str) -> None:
    (tmp_path / "link").symlink_to(f"/proc/{root}{tmp_path}/kept")
    for command in (f"cat /proc/{root}{tmp_path}/kept/a", f"cat {tmp_path}/link/a"):
        assert await verdict(command, rules=but(tmp_path / "kept")) == "forbid"
    for path in (f"/proc/{root}/x", "/proc/self/cwd/x", f"/proc/{os.getpid()}/cwd/x", "/dev/fd/3", "/proc/4194305/x"):
        assert await verdict("", rules=ALL, path=path) == ""
        assert await verdict("", Confinement(folders=("/",)), rules=ALL, path=path) == "ask"
    assert await verdict("", rules=ALL, path="/proc/cpuinfo") == "permit"


async def test_how_deep_a_path_is_costs_little(tmp_path: Path) -> None:
    deep = "/d" * 2000
    (tmp_path / "link").symlink_to(deep)
    began = time.process_time()
    for command in (f"cat {deep}", f"cat {tmp_path}/link/d"):
        assert await verdict(command, rules=but(Path("/d/d"))) == "forbid"
        assert await verdict(command, rules=ALL) == ""
        assert await verdict(command, Confinement(folders=("/",)), rules=ALL) == "ask"
    assert time.process_time() - began < 10
    assert await verdict(f"cat {deep[:160]}", rules=ALL) == "permit"


@pytest.fixture
def again(mounted: tuple[Path, Path], tmp_path: Path) -> Iterator[Path]:
    """Where all of it is mounted a second time, as a tool for backups does."""
    at = tmp_path / "again"
    at.mkdir()
    subprocess.run(["mount", "--bind", tmp_path, at], check=True)
    yield at
    subprocess.run(["umount", at], check=True)


async def test_all_but_one_folder_is_forbidden_where_all_is_mounted_again(
    mounted: tuple[Path, Path], again: Path
) -> None:
    _, project = mounted
    only = f'@id("only") forbid (principal, action, resource) unless {{ resource in Folder::"{project}" }};'
    say = partial(verdict, folder=str(project))
    assert await say("cat ./a", rules=ALL + only) == "permit"
    assert await say("cat in/a", rules=ALL + only) == "forbid", "that is mounted there from outside"
    assert await say(f"cat {again}/project/a", rules=ALL + only) == "forbid"
    assert await say("cat ./a", rules=but(again)) == "forbid"


@pytest.fixture
def dead(tmp_path: Path) -> Iterator[Path]:
    """Where a file system is mounted that never answers."""
    at, libc = tmp_path / "dead", ctypes.CDLL(None)
    at.mkdir()
    try:
        fuse = os.open("/dev/fuse", os.O_RDWR)
    except OSError:
        pytest.skip("no FUSE here")
    said = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"dead", os.fsencode(at), b"fuse", 0, said):
        os.close(fuse)
        pytest.skip("may not mount here")
    unhang = threading.Timer(60, os.close, (fuse,))  # else who waits for it would do so for ever
    unhang.start()
    yield at
    unhang.cancel()
    with contextlib.suppress(OSError):
        os.close(fuse)
    subprocess.run(["umount", "--lazy", at], check=True)


async def test_what_never_answers_is_not_waited_for(
    dead: Path, mounted: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, project = mounted
    monkeypatch.setattr(hook_paths, "SECONDS", 4.0)
    confined = Confinement(folders=(str(dead.parent),))
    (project / "link").symlink_to(kept)
    async with asyncio.timeout(120):
        assert await verdict(f"cat {dead}/x", folder=str(project), rules=ALL) == ""
        assert await verdict(f"cat {dead}/x", confined, folder=str(project), rules=ALL) == "ask"
        assert await verdict(f"cat {dead}/x link/a", folder=str(project), rules=but(kept)) == "forbid"
        assert await verdict(f"cat {dead}/x", folder=str(project), rules=but(dead)) == "forbid"
        assert all(each.returncode is not None for each in tool_calls._hanging["claude"]), "they were killed"
        assert await verdict("make", folder=str(project), rules=but(kept)) == "permit"


async def test_an_agent_whose_looks_cannot_be_ended_has_no_more_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = [SimpleNamespace(returncode=None) for _ in range(2)]
    monkeypatch.setattr(tool_calls, "_hanging", {"claude": hanging, "other": []})
    assert await tool_calls._looked(("/",), "claude") == {}
    assert await verdict("make") == "" and await verdict("make", CONFINED) == "ask"
    assert await tool_calls._looked(("/",), "other") == {"/": ("/", True)}
    hanging[0].returncode = -9
    assert await verdict("make") == "permit"


async def test_looks_at_once_that_cannot_be_ended_are_bounded_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, killed = tmp_path / "stuck.py", list[asyncio.subprocess.Process]()
    stuck.write_text("import time; time.sleep(60)")
    really = asyncio.subprocess.Process.kill
    with monkeypatch.context() as patched:
        patched.setattr(tool_calls, "_hanging", {})
        patched.setattr(tool_calls, "_ENDING", 0.05)
        patched.setattr(
            asyncio.subprocess.Process, "kill", lambda self: killed.append(self)
        )  # as one that waits for a dead disk
        patched.setattr(hook_paths, "SECONDS", 0.5)
        patched.setattr(hook_paths, "__file__", str(stuck))
        for count in (20, 8):
            await asyncio.gather(*(tool_calls._looked(("/",), "claude") for _ in range(count)))
            assert len(killed) == 8
    for process in killed:
        really(process)
        await process.wait()
    found = await asyncio.gather(*(tool_calls._looked(("/",), "claude") for _ in range(8)))
    assert all(found), "as many at once as an agent may have"


async def test_what_is_mounted_cannot_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(tool_calls, "mounts", failing)
    assert await verdict("make") == ""
    assert await verdict("make", CONFINED) == "ask"
    assert await verdict(f"cat {KEY}") == "forbid"
