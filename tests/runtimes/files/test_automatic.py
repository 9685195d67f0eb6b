"""What git, a shell or an editor runs by itself after a program's change is told by name, before all else."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest

from policies.actions import Files
from runtimes.files import automatic
from runtimes.files.tree import Entry
from tests.runtimes.files.desk import Way, context, runtime
from tests.runtimes.files.photo import photo

GIT, HG, ENTERED, OPENED = automatic._GIT, automatic._HG, automatic._ENTERED, automatic._OPENED
RUN = {
    ".git/hooks/pre-commit": GIT, "sub/.git/hooks/post-checkout": GIT, ".git/config": GIT, ".git/config.worktree": GIT,
    ".GIT/Hooks/pre-commit": GIT, ".git/modules/lib/hooks/pre-push": GIT, ".git/modules/lib/config": GIT,
    ".git/worktrees/w/config.worktree": GIT, ".git/worktrees/w/commondir": GIT, "sub/.git": GIT,
    ".git/rebase-merge/git-rebase-todo": GIT, ".husky/pre-commit": GIT, "web/.husky/_/h": GIT,
    ".githooks/pre-push": GIT, "lefthook.yml": GIT, ".pre-commit-config.yaml": GIT, ".envrc": ENTERED,
    "a/b/.envrc": ENTERED, "mise.toml": ENTERED, ".vscode/tasks.json": OPENED, ".claude/settings.json": OPENED,
    ".mcp.json": OPENED, ".github/hooks/x.json": OPENED, ".devcontainer/devcontainer.json": OPENED,
    ".cursor/hooks.json": OPENED, "lefthook-local.yml": GIT, ".overcommit.yml": GIT, "mise.local.toml": ENTERED,
    ".mise/config.toml": ENTERED, "opencode.json": OPENED, ".opencode/plugin/x.js": OPENED,
    ".helix/languages.toml": OPENED, ".git/rebase-merge/strategy": GIT, ".git/sequencer/opts": GIT,
    ".git/worktrees/w/rebase-merge/strategy": GIT, ".hg/hgrc": HG, "sub/.hg/hgrc-not-shared": HG,
    ".HG/sharedpath": HG,
}  # fmt: skip
NOT = [
    ".git/index", ".git/HEAD", ".git/hooks/pre-commit.sample", ".git/refs/heads/config", ".git/logs/refs/heads/hooks/x",
    ".git/objects/ab/cd", ".gitignore", "config", "hooks/pre-commit", "src/hooks/use.ts", "src/config", "HEAD",
    "Makefile", "package.json", ".github/workflows/ci.yml", "envrc", "a.git/x", "husky/pre-commit",
    ".hg/dirstate", ".hg/store/data/hgrc.i", "hgrc", "a.hg/hgrc", "opts", "strategy",
]  # fmt: skip


def entry(kind: str = "f", oid: str = "1", mode: int = 0o644, mtime: int = 0, target: bytes = b"") -> Entry:
    return Entry(kind, mode, 0, 0, mtime, oid=oid, target=target)


def tree(*paths: str, **said: Any) -> dict[bytes, Entry]:
    return {path.encode(): entry(**said) for path in paths}


@pytest.mark.parametrize("path", RUN)
def test_what_runs_by_itself_is_told(path: str) -> None:
    line = [f"{RUN[path]}: {path}"]
    assert automatic.told({}, tree(path)) == line
    assert automatic.told(tree(path), tree(path, oid="2")) == line
    assert automatic.told(tree(path), tree(path, mode=0o755)) == line, "git runs a hook that can be executed"
    assert automatic.told(tree(path), tree(path, kind="l", oid="", target=b"x")) == line
    assert automatic.told(tree(path), tree(path, mtime=9)) == automatic.told(tree(path), {}) == []


@pytest.mark.parametrize("path", NOT)
def test_what_does_not_is_no_warning(path: str) -> None:
    assert automatic.told({}, tree(path)) == []


@pytest.mark.parametrize(
    ("path", "when"),
    [(".git/hooks", GIT), (".husky", GIT), (".hg", HG), (".claude", OPENED), ("sub/.vscode", OPENED)],
)
def test_a_link_in_the_place_of_such_a_folder_is_told(path: str, when: str) -> None:
    assert automatic.told(tree(path, kind="d", oid=""), tree(path, kind="l", oid="", target=b"other")) == [
        f"{when}: {path}"
    ]
    assert automatic.told({}, tree(path, kind="d", oid="")) == []


def test_a_repository_whose_rest_lies_elsewhere_is_one() -> None:
    rest = {**tree("y/config"), **tree("y/objects", "y/refs", kind="d", oid="")}
    head, names = tree("x/HEAD"), tree("x/commondir")
    assert automatic.told({}, {**rest, **head}) == []
    assert automatic.told({**rest, **head}, {**rest, **head, **names}) == [f"{GIT}: x/commondir"]
    assert automatic.told({**rest, **names}, {**rest, **head, **names}) == [f"{GIT}: x/HEAD"]


def test_a_repository_without_a_work_tree_is_one_wherever_it_lies() -> None:
    bare = tree("x/HEAD", "x/objects", "x/refs")
    assert automatic.told(bare, {**bare, **tree("x/config")}) == [f"{GIT}: x/config"]
    assert automatic.told(bare, {**bare, **tree("x/hooks/a/b")}) == [f"{GIT}: x/hooks/a/b"]
    config = tree("x/config")
    assert automatic.told(config, {**bare, **config}) == [f"{GIT}: x/HEAD"], "what was there is obeyed from now on"
    for part in ("HEAD", "objects", "refs"):
        made = {**bare, **config}
        unfinished = {path: one for path, one in made.items() if path != f"x/{part}".encode()}
        assert automatic.told({}, unfinished) == []
        for kind in "dl" if part != "HEAD" else "fl":
            last = tree(f"x/{part}", kind=kind, oid="")
            assert automatic.told(unfinished, {**unfinished, **last}) == [f"{GIT}: x/{part}"], "what completes it"
    folder = tree("x/HEAD", kind="d", oid="")
    assert automatic.told({**bare, **config, **folder}, {**bare, **config}) == [f"{GIT}: x/HEAD"], "it was a folder"
    root = tree("HEAD", "objects", "refs")
    assert automatic.told(root, {**root, **tree("hooks/update")}) == [f"{GIT}: hooks/update"]


def test_of_many_the_rest_is_counted_and_names_are_escaped() -> None:
    many = tree(*(f".git/hooks/h{number}" for number in range(5)), ".husky/\x1b[2J")
    assert automatic.told({}, many) == [f"{GIT}: .git/hooks/h0, .git/hooks/h1, .git/hooks/h2 and 3 more"]
    assert "\x1b" not in automatic.told({}, tree(".husky/\x1b[2J"))[0]


PROGRAM = (
    "for n in $(seq 300); do : > .a$n; done; printf '[core]\\n\\tfsmonitor = ./x\\n' >> .git/config; "
    "printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; echo x > .envrc"
)
LINES = (f"{GIT}: .git/config, .git/hooks/pre-commit", f"{ENTERED}: .envrc")


@pytest.fixture(params=["owned", "roots"], ids=["direct", "copy"])
def folder(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    subprocess.run(["git", "init", "-q", found], check=True, env={"PATH": "/usr/bin:/bin"})
    for path in (found, *found.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    return found


async def test_it_stands_before_300_changes_and_in_the_summary(folder: Path, state: Path) -> None:
    as_it_was = photo(folder)
    way = Way(runtime(state), folder, PROGRAM)
    outcome = await way.do()
    assert outcome.changes_cut and {*LINES} <= {*outcome.changes[:5]}
    assert outcome.summary.endswith(" It changed what git or another tool may run by itself.")
    await way.revert("undo")
    assert photo(folder) == as_it_was


async def test_a_dry_run_and_what_applies_it_say_it_first(folder: Path, state: Path) -> None:
    made = runtime(state)
    action = Files(folder=str(folder), language="shell", program=PROGRAM)
    of_it = dataclasses.replace(context("dry-1"), keep=True)
    found = await made.dry_run(await made.assess(action, of_it), of_it)
    assert {line.text for line in found.lines if line.kind == "warning"} >= {*LINES}
    way = Way(made, folder)
    way.action = dataclasses.replace(action, preview=found.preview)
    outcome = await way.do()
    assert way.plan is not None and {*LINES} <= {*way.plan.lines}
    assert {*LINES} <= {*outcome.changes[:5]} and "may run by itself" in outcome.summary
