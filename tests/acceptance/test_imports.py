"""Who imports whom: the contracts hold and can fail; and what must not be loaded isn't, however it would come in."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("goex", "vault", "mapper", "runtimes", "policies")


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=550, check=False)


FORBIDDEN = [
    ("policies", "goex.cli"),
    ("runtimes", "goex"),
    ("policies", "vault.secret"),
    ("vault", "mapper"),
    ("mapper", "vault.secret"),
    ("mapper", "runtimes.base"),
    ("runtimes", "vault.store"),
    ("runtimes.gateway", "vault.keys"),
]


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What is said of a copy in which each of them stands, in a module of its own."""
    copy = tmp_path_factory.mktemp("copy")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    for number, (module, imported) in enumerate(FORBIDDEN):
        (copy / Path(*module.split(".")) / f"zz_bad{number}.py").write_text(f"import {imported}\n")
    return lint(copy)


def test_the_contracts_hold() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("module", "imported"), FORBIDDEN)
def test_a_contract_fails_on_what_it_forbids(
    broken: subprocess.CompletedProcess[str], module: str, imported: str
) -> None:
    assert broken.returncode != 0
    assert "BROKEN" in broken.stdout
    assert f"{module}.zz_bad{FORBIDDEN.index((module, imported))}" in broken.stdout


def loaded_by(program: str) -> set[str]:
    """The modules that `program` loads in a fresh interpreter, above those that any program has."""
    source = f"""
        import json, sys
        before = set(sys.modules)
        {textwrap.dedent(program).strip().replace(chr(10), chr(10) + "        ")}
        print("\\n" + json.dumps(sorted(set(sys.modules) - before)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, timeout=300, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def tops(modules: set[str]) -> set[str]:
    return {name.split(".")[0] for name in modules}


def test_decisions_load_nothing_but_policies_and_the_standard_library() -> None:
    loaded = tops(loaded_by("import policies.decisions"))
    assert "policies" in loaded
    assert loaded - sys.stdlib_module_names == {"policies"}


@pytest.mark.promise(33)
def test_the_gateway_process_cannot_reach_the_vault() -> None:
    loaded = loaded_by("import runtimes.gateway.process")
    assert "runtimes.gateway.process" in loaded
    ours = {name for name in loaded if name.split(".")[0] in PACKAGES}
    assert {name for name in ours if name.startswith("vault.")} <= {"vault.secret", "vault.lease", "vault.hardening"}
    assert not {name for name in ours if name.split(".")[0] in ("goex", "mapper")}
    assert not tops(loaded) & {"keyring", "sqlalchemy", "openai", "grpc", "docker", "argon2", "git"}


def test_help_is_quick_because_it_loads_no_engine() -> None:
    loaded = tops(
        loaded_by(
            """
            sys.argv = ["goex", "--help"]
            from goex.cli.main import main
            try:
                main()
            except SystemExit:
                pass
            """
        )
    )
    assert "typer" in loaded
    assert not loaded & {"grpc", "docker", "openai", "sqlalchemy", "keyring", "cryptography", "git"}


def test_the_probe_sees_what_is_loaded() -> None:
    assert "sqlalchemy" in tops(loaded_by("import sqlalchemy"))
    assert "json.tool" in loaded_by("import json.tool")


def test_no_database_driver_is_loaded_before_somebody_works_on_a_database() -> None:
    loaded = loaded_by("import goex.daemon.app, runtimes.mongo.runtime, runtimes.sql.runtime")
    assert "runtimes.mongo.runtime" in loaded
    drivers = {"apsw", "bson", "psycopg", "pymongo", "pymysql", "sqlglot"}
    assert not drivers & {name.partition(".")[0] for name in loaded}
