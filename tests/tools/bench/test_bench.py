"""The measuring itself, never the times: what is written, how it is said, and that floors are measured in turn."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from mapper.catalog import Catalog
from mapper.embedded import EmbeddedProposer
from policies.errors import Unavailable
from runtimes.sandbox import spec
from runtimes.sandbox.contract import Profile
from tests.mapper.importing.documents import things
from tools.bench import (
    catalog_import,
    catalog_open,
    catalog_search,
    catalogs,
    daemon_memory,
    databases,
    decision,
    folders,
    fresh,
    gateway_stream,
    lease,
    log_page,
    log_verification,
    memory,
    model_overhead,
    openapi_import,
    request_map,
    run,
    sandbox,
    small_folder,
    sql_keys,
    unchanged_tree,
)
from tools.bench.measure import LEAST_ROUNDS, Row, Timings, in_turn, row, table

# A name never changes its meaning, and none is lost.
NAMES = (
    "catalog.import_s",
    "catalog.open.p50_ms",
    "catalog.search.p50_ms",
    "map.embedded.p50_ms",
    "map.model_overhead.p50_ms",
    "map.memory_mb",
    "decide.p50_ms",
    "lease.p50_ms",
    "journal.append.p50_ms",
    "log.verify.rows_per_s",
    "log.first_page.p50_ms",
    "prompt.words",
    "gateway.added.p50_ms",
    "gateway.stream_mb_per_s",
    "sandbox.cold.p50_ms",
    "sandbox.warm.p50_ms",
    "sandbox.beside",
    "exec.p50_ms",
    "daemon.rss_mb",
    "exec.warm.p50_ms",
    "files.snapshot_20k_s",
    "files.unchanged_55k_s",
    "exec.folder.p50_ms",
    "sql.reversal_200k.ratio",
    "sql.undo_fk_ms_per_row",
    "import.openapi_ops_per_s",
    "mcp.added.p50_ms",
    "client.import_ms",
    "web.first_paint_ms",
)


def test_every_name_is_measured() -> None:
    assert tuple(run.GROUPS) == NAMES


def test_a_run_writes_the_list_and_prints_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, thorough: bool
) -> None:
    async def told() -> tuple[Row, ...]:
        return (replace(_row(), name=decision.NAME),)

    output = tmp_path / "bench.json"
    monkeypatch.setitem(run.GROUPS, decision.NAME, partial(decision.measure, seconds=0) if thorough else told)
    assert run.main(["--only", "decide.p50_ms", "--json", "--output", str(output)]) == 0
    written = json.loads(output.read_text())
    assert json.loads(capsys.readouterr().out) == written
    (row,) = written
    assert {"name", "value", "unit", "floor_name", "floor", "ratio"} <= row.keys()
    assert (row["name"], row["unit"]) == ("decide.p50_ms", "ms")
    assert row["value"] > 0 and row["floor"] > 0 and row["floor_name"]
    assert row["ratio"] == pytest.approx(row["value"] / row["floor"], rel=0.01)


def test_a_group_that_fails_is_told_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> tuple[Row, ...]:
        raise Unavailable("There is no engine.")

    async def sound() -> tuple[Row, ...]:
        return (_row(),)

    monkeypatch.setattr(run, "GROUPS", {"broken": broken, "sound": sound})
    assert run.main(["--output", str(tmp_path / "bench.json")]) == 1
    said = capsys.readouterr()
    assert "There is no engine." in said.err
    assert "sound" in said.out
    assert [each["name"] for each in json.loads((tmp_path / "bench.json").read_text())] == ["sound"]


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run.main(["--only", "nothing"])
    assert ended.value.code == 2
    assert "exec.p50_ms" in capsys.readouterr().err


async def test_value_and_floor_are_measured_in_turn_and_the_first_rounds_dropped() -> None:
    order: list[str] = []

    async def value() -> None:
        order.append("value")

    async def floor() -> None:
        order.append("floor")

    values, floors = await in_turn(value, floor, rounds=7, seconds=60, warm=2)
    assert order == ["value", "floor"] * 9
    assert len(values.each) == len(floors.each) == 7


async def test_time_that_is_over_ends_it_but_not_before_the_least_rounds() -> None:
    async def nothing() -> None: ...

    values, _ = await in_turn(nothing, nothing, rounds=1000, seconds=0)
    assert len(values.each) == LEAST_ROUNDS


def test_percentiles_are_times_that_were_measured() -> None:
    timings = Timings(tuple(float(n) for n in range(100, 0, -1)))
    assert (timings.p50, timings.p95) == (50.0, 95.0)
    assert Timings((3.0,)).p95 == 3.0


def test_the_table_holds_value_and_floor_and_their_unit() -> None:
    seconds = row("slow", Timings((4.0,)), "least", Timings((1.0,)), unit="s")
    head, line, slow = table([_row(), seconds]).splitlines()
    assert head.split()[0] == "name" and "ms" not in head
    assert {"sound", "2.000", "1.000", "ms"} <= set(line.split())
    assert {"slow", "4.000", "1.000", "s"} <= set(slow.split()) and "ms" not in slow.split()
    assert (_row().to_json()["unit"], seconds.to_json()["unit"]) == ("ms", "s")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> catalogs.Built:
    folder = tmp_path_factory.mktemp("small")
    things(folder / "documents")
    return catalogs.build(folder / "catalog.db", folder / "documents")


@pytest.mark.thorough
def test_a_catalog_is_imported_with_its_index_in_another_process(small: catalogs.Built) -> None:
    catalog = Catalog.open(small.path)
    assert "things" in catalog.services
    assert small.methods == sum(len(service.methods) for service in catalog.services.values())
    assert small.seconds > 0
    assert EmbeddedProposer(catalog).index.search("list my things")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("group", "limits", "names", "unit"),
    [
        (catalog_import, {}, ["catalog.import_s"], "s"),
        (catalog_open, {"rounds": 2}, ["catalog.open.p50_ms"], "ms"),
        (catalog_search, {"rounds": 3}, ["catalog.search.p50_ms"], "ms"),
        (request_map, {"rounds": 3}, ["map.embedded.p50_ms"], "ms"),
        (model_overhead, {"rounds": 3}, ["map.model_overhead.p50_ms"], "ms"),
        (memory, {"rounds": 2, "requests": 3}, ["map.memory_mb", "map.memory_peak_mb"], "MB"),
    ],
)
async def test_a_tiny_run_over_a_small_catalog(
    small: catalogs.Built, group: ModuleType, limits: dict[str, int], names: list[str], unit: str
) -> None:
    rows = await group.measure(small, **limits)
    assert [each.name for each in rows] == names and rows[0].name == group.NAME
    for each in rows:
        assert each.unit == unit and each.value > 0 and each.floor > 0
        assert each.rounds == limits.get("rounds", 1)


@pytest.mark.thorough
async def test_a_tiny_run_over_a_short_journal() -> None:
    (checked,) = await log_verification.measure(rows=300, rounds=2)
    assert (checked.unit, checked.rounds) == ("rows/s", 2)
    assert 0 < checked.p95 <= checked.value and checked.floor_p95 <= checked.floor
    pages = await log_page.measure(rows=7200, rounds=1)  # as few as fill a page of what is looked for
    assert [each.name for each in pages] == [log_page.NAME, "log.rows_page.p50_ms", "log.found_page.p50_ms"]
    assert all(each.value > 0 and each.floor > 0 for each in pages)


@pytest.mark.thorough
async def test_a_tiny_run_over_short_streams() -> None:
    rows = await gateway_stream.measure(body=2**20, large=2**22, rounds=2)
    names = ["gateway.upload_mb_per_s", "gateway.rules.added.p50_ms", "gateway.stream_rss_mb"]
    assert [each.name for each in rows] == [gateway_stream.NAME, *names]
    assert [each.unit for each in rows] == ["MB/s", "MB/s", "ms", "MB"]
    assert all(each.floor > 0 for each in rows)
    assert rows[0].value >= rows[0].p95 > 0


@pytest.mark.docker
async def test_a_daemon_stays_below_its_bound_after_an_action() -> None:
    (measured,) = await daemon_memory.measure(rounds=1)
    assert (measured.name, measured.unit) == (daemon_memory.NAME, "MB")
    # It is 100 on two cores with Python 3.11, and one more or less on another machine: what a kernel maps around a page
    # of a library differs. A library loaded for nothing, or a heap for each thread, shows beyond the tenth left.
    assert measured.floor < measured.value < 110


@pytest.mark.thorough
async def test_a_tiny_run_over_a_small_folder() -> None:
    rows = await folders.measure(files=500, rounds=1, large=3 * 10**6, large_rounds=1)
    names = ["files.snapshot_20k_s", "files.incremental_s", "files.undo_s", "files.large_1gb_s"]
    assert [each.name for each in rows] == names
    assert all(each.unit == "s" and each.value > 0 and each.floor > 0 for each in rows)


async def test_a_tree_that_is_made_twice_is_the_same_and_as_large_as_was_asked(tmp_path: Path) -> None:
    for name in ("one", "other"):
        unchanged_tree.grow(tmp_path / name, 40, 300_000)
    one, other = ({path.relative_to(top): path.read_bytes() for path in top.rglob("f*")}
                  for top in (tmp_path / "one", tmp_path / "other"))  # fmt: skip
    assert one == other and len(one) == 40
    assert sum(map(len, one.values())) == 300_000


@pytest.mark.thorough
@pytest.mark.docker
async def test_a_tiny_run_over_an_unchanged_tree_and_a_small_folder() -> None:
    if shutil.which("restic"):
        rows = await unchanged_tree.measure(files=60, size=200_000, rounds=1, age=0)
        assert {unchanged_tree.NAME} <= {each.name for each in rows}
        assert all(each.unit == "s" and each.value > 0 and each.floor > 0 for each in rows)
    rows = await small_folder.measure(rounds=1, rest=0.1)
    assert {small_folder.NAME} <= {each.name for each in rows}
    assert all(each.unit == "ms" and each.value > 0 and each.floor > 0 for each in rows)


def test_without_restic_the_group_says_so_and_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert run.main(["--only", unchanged_tree.NAME, "--output", str(tmp_path / "bench.json")]) == 0
    assert "restic isn't installed" in capsys.readouterr().err
    assert json.loads((tmp_path / "bench.json").read_text()) == []


@pytest.mark.thorough
async def test_a_tiny_run_over_tables_with_foreign_keys() -> None:
    rows = await sql_keys.measure(orders=20, rounds=1)
    assert [each.name for each in rows] == [sql_keys.NAME, f"{sql_keys.NAME}.postgresql"]
    assert all(each.unit == "ms" and each.value > 0 and each.floor > 0 for each in rows)


@pytest.mark.thorough
async def test_a_tiny_run_over_openapi_documents() -> None:
    (found,) = await openapi_import.measure(documents=2, operations=8, rounds=1)
    assert (found.name, found.unit) == (openapi_import.NAME, "ops/s")
    assert found.value > 0 and found.floor > 0


@pytest.mark.thorough
async def test_a_tiny_run_over_each_kind_of_database() -> None:
    rows = await databases.measure(rows=50, rounds=1, holds=2)
    kinds = ["", ".mariadb", ".sqlite"]
    names = [
        *(f"sql.reversal_200k.ratio{kind}" for kind in kinds),
        *(f"sql.hold.{what}p50_ms{kind}" for kind in kinds[:2] for what in ("added_", "")),
    ]
    assert [each.name for each in rows] == names
    assert all(each.floor > 0 for each in rows)


@pytest.mark.thorough
async def test_a_lease_is_measured_for_a_login_and_for_a_key() -> None:
    assert [each.name for each in await lease.measure(seconds=0)] == [lease.NAME, "lease.key.p50_ms"]


@pytest.mark.thorough
def test_memory_counts_the_libraries_and_what_is_opened(small: catalogs.Built) -> None:
    floor, mapped = fresh.run("libraries"), fresh.run("map", small.path, 1)
    assert mapped["mb"] > floor["mb"] > 5
    assert mapped["peak_mb"] >= mapped["mb"]


def test_a_process_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"was to import failed.*nothing"):
        catalogs.build(tmp_path / "catalog.db", tmp_path / "nothing")


def test_without_the_package_the_groups_say_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None)
    catalogs.full.cache_clear()
    assert run.main(["--only", "catalog.search.p50_ms", "--output", str(tmp_path / "bench.json")]) == 1
    assert 'pip install "goex[google]"' in capsys.readouterr().err


def test_the_requests_are_many_and_all_different() -> None:
    asked = catalogs.requests()
    assert len(asked) == len(set(asked)) >= memory.REQUESTS


def test_the_command_gets_the_same_limits_as_the_sandbox(tmp_path: Path) -> None:
    identity = spec.Identity(state_id="s", instance="i")
    config = spec.container(sandbox.JOB, Profile(), "sha256:0", identity, None, frozenset())
    found = sandbox.flags(config, tmp_path)
    for flag in (
        "--network=none",
        "--cap-drop=ALL",
        "--read-only",
        "--user=65534:65534",
        "--pids-limit=64",
        "--dns=127.0.0.1",
    ):
        assert flag in found
    assert f"--security-opt=seccomp={tmp_path}/seccomp.json" in found
    assert json.loads((tmp_path / "seccomp.json").read_text())["defaultAction"]
    assert found[-1] == "true"
    # All that the engine is told and the command can say is said: what is new in the configuration must be looked at.
    unsaid = {
        "CapAdd", "Devices", "Binds", "Mounts", "Privileged", "PidMode", "UTSMode", "MaskedPaths", "ReadonlyPaths",
        "AutoRemove", "Init", "UsernsMode",
    }  # fmt: skip
    said = {
        "Runtime", "NetworkMode", "IpcMode", "CgroupnsMode", "CapDrop", "SecurityOpt", "ReadonlyRootfs", "LogConfig",
        "RestartPolicy", "OomScoreAdj", "Memory", "MemorySwap", "NanoCpus", "PidsLimit", "ShmSize", "Tmpfs", "Ulimits",
            "Dns", "DnsSearch", "DnsOptions",
    }  # fmt: skip
    assert set(config["HostConfig"]) == unsaid | said


def _row() -> Row:
    return Row(name="sound", value=2.0, floor_name="least", floor=1.0, p95=3.0, floor_p95=1.5, rounds=9)
