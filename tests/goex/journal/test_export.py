"""Exported journals: whole ones check, and whatever was done to a file is found, by the program that stands alone."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goex.journal import verify as verifier
from goex.journal.chain import Journal
from goex.journal.errors import JournalBroken
from goex.journal.export import export
from goex.journal.search import AT_ONCE, Wanted
from goex.journal.verify import Altered, check
from policies.services import Risk
from tests.adversarial.hunting import Hunt, token
from tests.goex.journal.old import ROWS, opened, restored

EVIL = '\x1b[2J\u202e\u2028\n\r\x00"\\</script>é\U0001f600'


def written(journal: Journal, wanted: Wanted | None = None) -> bytes:
    return b"".join(lines for lines, _ in export(journal, wanted or Wanted()))


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    restored(tmp_path)
    return opened(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("whole")
    restored(folder)
    journal = opened(folder)
    journal.append(EVIL, agent=EVIL, facts={EVIL: EVIL, "deep": [{"n": 1.5e300, "big": 2**70}]})
    return written(journal)


def test_a_whole_export_checks_and_holds_every_row(whole: bytes) -> None:
    found = check(io.BytesIO(whole))
    assert (found.rows, found.first, found.last, found.whole, found.authenticated) == (
        ROWS + 1,
        1,
        ROWS + 1,
        True,
        True,
    )
    lines = [json.loads(line) for line in whole.splitlines()]
    assert lines[-2]["facts"][EVIL] == EVIL == lines[-2]["agent"]
    assert lines[0]["made"] and lines[0]["wanted"] == {}


def test_nothing_in_it_can_trick_a_terminal_or_end_a_line(whole: bytes) -> None:
    assert whole.isascii()
    assert not any(byte < 32 and byte != 10 for byte in whole)
    assert len(whole.splitlines()) == whole.count(b"\n") == ROWS + 3


def test_it_ends_at_the_head_that_verifying_prints(journal: Journal) -> None:
    head = journal.verify().head
    assert check(io.BytesIO(written(journal)), head).head_given
    with pytest.raises(Altered, match="the one that you know"):
        check(io.BytesIO(written(journal)), "0" * 64)


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (Wanted(agent="other"), [32, 33]),
        (Wanted(kind="request"), [11, 21, 29]),
        (Wanted(service="slack", kind="finish"), [13, 23, 31]),
        (Wanted(risk=Risk.DELETE), []),
        (Wanted(text="no such folder"), [33]),
    ],
)
def test_a_selection_says_so_and_checks(journal: Journal, wanted: Wanted, numbers: list[int]) -> None:
    text = written(journal, wanted)
    rows = [json.loads(line) for line in text.splitlines()[1:-1]]
    assert [row["number"] for row in rows] == numbers
    found = check(io.BytesIO(text))
    assert (found.whole, found.rows) == (False, len(numbers))
    assert json.loads(text.splitlines()[0])["wanted"]


def test_a_sealed_journal_says_that_nothing_vouched_for_its_head(tmp_path: Path) -> None:
    restored(tmp_path)
    found = check(io.BytesIO(written(Journal(tmp_path / "state.db", tmp_path / "journal.head"))))
    assert not found.authenticated
    assert "sealed" in verifier.in_words(found)


def test_a_journal_that_was_cut_is_not_exported_as_if_it_were_whole(journal: Journal) -> None:
    with journal.engine.connect() as connection:
        connection.exec_driver_sql(f"delete from journal where number = {ROWS}")
        connection.commit()
    with pytest.raises(JournalBroken, match="cut or edited"):
        written(journal)


def test_a_row_that_was_edited_in_the_database_is_found_in_the_export(journal: Journal) -> None:
    with journal.engine.connect() as connection:
        connection.exec_driver_sql('update journal set facts = \'{"request": "call-1"}\' where number = 10')
        connection.commit()
    with pytest.raises(Altered, match="row 10 isn't what was written"):
        check(io.BytesIO(written(journal)))
    with journal.engine.connect() as connection:
        connection.exec_driver_sql("update journal set facts = 'no json' where number = 10")
        connection.commit()
    with pytest.raises(Altered, match="row 10 isn't what was written"):
        check(io.BytesIO(written(journal)))


def test_facts_in_another_form_than_the_canonical_one_keep_their_hash(tmp_path: Path) -> None:
    """Keys that aren't texts become texts, which sort otherwise: the text that was hashed stands beside them."""
    journal = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    journal.unlock(b"k" * 32)
    journal.append("note", facts={"n": {2: "b", 10: "a"}})
    text = written(journal)
    assert b"facts_text" in text
    assert check(io.BytesIO(text)).rows == 1
    with pytest.raises(Altered, match="aren't what their text says"):
        check(io.BytesIO(_resealed(text, lambda row: row["facts"]["n"].update({"2": "c"}))))


def test_rows_that_come_meanwhile_are_not_in_it(journal: Journal) -> None:
    portions = export(journal, Wanted())
    text, _ = next(portions)
    journal.append("note")
    text += b"".join(lines for lines, _ in portions)
    assert check(io.BytesIO(text)).last == ROWS


@pytest.mark.promise(82)
@given(st.data())
def test_any_line_cut_moved_or_doubled_is_found(whole: bytes, data: st.DataObject) -> None:
    lines = whole.splitlines(keepends=True)
    place = data.draw(st.integers(0, len(lines) - 1))
    way = data.draw(st.sampled_from(["drop", "double", "swap", "cut here"]))
    if way == "drop":
        changed = lines[:place] + lines[place + 1 :]
    elif way == "double":
        changed = [*lines[:place], lines[place], *lines[place:]]
    elif way == "swap":
        other = data.draw(st.integers(0, len(lines) - 1).filter(lambda each: each != place))
        changed = lines.copy()
        changed[place], changed[other] = changed[other], changed[place]
    else:
        changed = lines[:place]
    with pytest.raises(Altered):
        check(io.BytesIO(b"".join(changed)))


@pytest.mark.promise(82)
@given(st.data())
def test_any_byte_that_was_changed_or_cut_is_found(whole: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        changed = whole[:place]
    else:
        byte = data.draw(st.integers(0, 255).filter(lambda each: each != whole[place]))
        changed = whole[:place] + bytes([byte]) + whole[place + 1 :]
    with pytest.raises(Altered):
        check(io.BytesIO(changed))


@pytest.mark.parametrize(
    "field", ["at", "action", "agent", "kind", "from", "to", "facts", "previous", "hash", "number"]
)
def test_a_field_changed_by_someone_who_makes_the_last_line_anew_is_found(whole: bytes, field: str) -> None:
    def change(row: dict[str, Any]) -> None:
        row[field] = {"facts": {"x": 1}, "number": 99, "hash": "0" * 64, "previous": "0" * 64}.get(field, "other")

    with pytest.raises(Altered):
        check(io.BytesIO(_resealed(whole, change)))


def test_a_row_made_anew_does_not_fit_the_next(whole: bytes) -> None:
    def change(row: dict[str, Any]) -> None:
        row["agent"] = "somebody else"
        body = [row[name] for name in ("number", "at", "action", "agent", "kind", "from", "to")]
        text = verifier._canonical([*body, row.get("facts_text") or verifier._canonical(row["facts"])])
        row["hash"] = hashlib.sha256(bytes.fromhex(row["previous"]) + text.encode()).hexdigest()

    with pytest.raises(Altered, match="doesn't follow the one before it"):
        check(io.BytesIO(_resealed(whole, change)))


def test_what_the_last_line_says_must_be_so(whole: bytes) -> None:
    lines = whole.splitlines(keepends=True)
    end = json.loads(lines[-1])
    for changed in (
        {"rows": end["rows"] - 1},
        {"sha256": "0" * 64},
        {"head": {**end["head"], "number": end["head"]["number"] + 1}},
        {"end": False},
    ):
        last = json.dumps({**end, **changed}).encode() + b"\n"
        with pytest.raises(Altered):
            check(io.BytesIO(b"".join([*lines[:-1], last])))
    with pytest.raises(Altered, match="says that it is the last"):
        check(io.BytesIO(whole + lines[1]))


def test_the_first_line_must_speak_of_the_same_head(journal: Journal) -> None:
    lines = written(journal, Wanted(kind="request")).splitlines(keepends=True)
    first = json.loads(lines[0])
    first["head"]["number"] += 1
    text = _ended(json.dumps(first).encode() + b"\n", lines[1:-1], lines[-1])
    with pytest.raises(Altered, match="different heads"):
        check(io.BytesIO(text))


@pytest.mark.parametrize(
    "head", [{}, {"number": "x", "hash": ""}, {"number": [], "hash": ""}, {"number": 40, "hash": 1}]
)
def test_a_head_that_is_none_is_said(journal: Journal, head: object) -> None:
    lines = written(journal, Wanted(kind="request")).splitlines(keepends=True)
    first, last = ({**json.loads(line), "head": head} for line in (lines[0], lines[-1]))
    with pytest.raises(Altered, match="where the chain ends"):
        check(io.BytesIO(_ended(json.dumps(first).encode() + b"\n", lines[1:-1], json.dumps(last).encode())))


@pytest.mark.promise(82)
def test_facts_that_python_calls_equal_are_altered_all_the_same(journal: Journal) -> None:
    """Whoever reads the export reads `facts`, and the hash is over the text beside them."""
    journal.append("note", facts={"count": 1, "well": True})
    first, *rows, last = written(journal).splitlines(keepends=True)
    row = json.loads(rows[-1])
    for facts in ({"count": True, "well": True}, {"count": 1, "well": 1}, {"count": 1.0, "well": True}):
        forged = {**row, "facts": facts, "facts_text": '{"count":1,"well":true}'}
        with pytest.raises(Altered, match="aren't what their text says"):
            check(io.BytesIO(_ended(first, [*rows[:-1], json.dumps(forged).encode() + b"\n"], last)))


def test_a_statement_too_deep_to_be_read_is_said() -> None:
    deep = {"assertion": {"passkey": "pk-1", "statement": "[" * 200_000}}
    assert verifier.Signatures(whole=True).row(1, "", "grant", "a-1", deep) == "holds an assertion that can't be read"


def test_rows_of_a_selection_stand_in_their_order_and_once(journal: Journal) -> None:
    lines = written(journal, Wanted(kind="request")).splitlines(keepends=True)
    for rows in ([lines[2], lines[1], lines[3]], [lines[1], lines[1], lines[2]]):
        with pytest.raises(Altered, match="stands behind row"):
            check(io.BytesIO(_ended(lines[0], rows, lines[-1])))


def test_a_row_taken_out_by_someone_who_makes_the_last_line_anew_is_found(whole: bytes) -> None:
    lines = whole.splitlines(keepends=True)
    for place in range(1, len(lines) - 1):
        rows = lines[1:place] + lines[place + 1 : -1]
        with pytest.raises(Altered):
            check(io.BytesIO(_ended(lines[0], rows, lines[-1])))


@pytest.mark.promise(82)
def test_a_chain_made_anew_is_found_by_a_head_that_is_known(whole: bytes) -> None:
    """And only so: that is what the head is for."""
    lines = [json.loads(line) for line in whole.splitlines()]
    head, last = lines[-1]["head"]["hash"], verifier.GENESIS
    lines[3]["agent"] = "somebody else"
    for row in lines[1:-1]:
        body = [row[name] for name in ("number", "at", "action", "agent", "kind", "from", "to")]
        text = verifier._canonical([*body, row.get("facts_text") or verifier._canonical(row["facts"])])
        row["previous"] = last
        row["hash"] = last = hashlib.sha256(bytes.fromhex(last) + text.encode()).hexdigest()
    lines[0]["head"]["hash"] = lines[-1]["head"]["hash"] = last
    dumped = [json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines]
    forged = _ended(dumped[0], dumped[1:-1], dumped[-1])
    assert check(io.BytesIO(forged)).head == last
    with pytest.raises(Altered, match="the one that you know"):
        check(io.BytesIO(forged), head)


@pytest.mark.parametrize(
    "text",
    [b"", b"\n", b"{}\n", b"[]\n", b"null\n", b"\xff\n", b'{"goex":"journal","format":2}\n', b"{" * 100_000 + b"\n"],
)
def test_what_is_no_export_is_said(text: bytes) -> None:
    with pytest.raises(Altered):
        check(io.BytesIO(text))


def test_the_program_stands_alone(whole: bytes, tmp_path: Path) -> None:
    """Copied elsewhere, in an interpreter without our packages."""
    program = tmp_path / "check.py"
    program.write_bytes(Path(verifier.__file__).read_bytes())
    file = tmp_path / "journal.jsonl"
    file.write_bytes(whole)

    def run(*more: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-I", "-S", str(program), *more]
        return subprocess.run(command, input=stdin, capture_output=True, check=False, cwd=tmp_path)

    head = json.loads(whole.splitlines()[-1])["head"]["hash"]
    good = run(str(file), "--head", head)
    assert (good.returncode, good.stderr) == (0, b"")
    assert b"Its head is the one that you gave" in good.stdout
    assert run("-", stdin=whole).returncode == 0
    assert run("-", stdin=whole[:-10]).returncode == 1
    assert b"Altered." in run(str(file), "--head", "ab" * 32).stderr
    assert run(str(tmp_path / "none")).returncode == 2


def test_it_takes_no_more_memory_for_more_rows(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    journal.unlock(b"k" * 32)
    peaks = []
    for _ in range(2):
        with journal.transaction() as transaction:
            for number in range(6 * AT_ONCE):
                transaction.append("note", facts={"n": number, "filler": "x" * 500})
        tracemalloc.start()
        size = sum(len(lines) for lines, _ in export(journal, Wanted()))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert size > 6 * AT_ONCE * 500
    assert peaks[1] < 1.3 * peaks[0]


def test_a_credential_would_be_found_in_it(tmp_path: Path) -> None:
    """The control for the canary's search of exports: in every form that a text can hold."""
    value = token()
    journal = Journal(tmp_path / "state.db", tmp_path / "journal.head")
    journal.unlock(b"k" * 32)
    journal.append("note", facts={"said": f"Bearer {value}"})
    assert "plain" in Hunt(value).pieces(written(journal))[value]


def _resealed(whole: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """One row changed, and the last line made anew, as somebody would who knows the format."""
    lines = whole.splitlines(keepends=True)
    place = len(lines) // 2
    row = json.loads(lines[place])
    change(row)
    lines[place] = json.dumps(row, separators=(",", ":")).encode() + b"\n"
    return _ended(lines[0], lines[1:-1], lines[-1])


def _ended(first: bytes, rows: list[bytes], last: bytes) -> bytes:
    text = first + b"".join(rows)
    end = {**json.loads(last), "rows": len(rows), "sha256": hashlib.sha256(text).hexdigest()}
    return text + json.dumps(end, separators=(",", ":")).encode() + b"\n"
