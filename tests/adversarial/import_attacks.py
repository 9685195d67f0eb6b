"""Attacks by documents that somebody imports."""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where

_FILE = "tests/adversarial/test_import_attacks.py"

ROWS: tuple[Attack, ...] = (
    Attack(
        name="import_get_that_deletes",
        tries="has a document call its deletion a GET, so that it runs as a read",
        where=Where.GRANTS,
        refused_by=("a GET's risk is what its words, path and parameters say",),
        test=f"{_FILE}::test_a_get_that_deletes_is_asked_for",
        control=f"{_FILE}::test_a_get_that_deletes_is_asked_for",
    ),
    Attack(
        name="import_flag_that_changes",
        tries="hides a change behind a flag of a GET, by a reference to its schema",
        where=Where.GRANTS,
        refused_by=("flags and choices of a GET's parameters, references followed",),
        test=f"{_FILE}::test_a_flag_that_changes_is_asked_for",
        control=f"{_FILE}::test_a_flag_that_changes_is_asked_for",
    ),
    Attack(
        name="import_secret_as_signature",
        tries="has the secret that requests are signed with sent as the Authorization header",
        where=Where.GRANTS,
        refused_by=("a scheme that speaks of a signature is unsupported",),
        test=f"{_FILE}::test_a_signing_secret_is_not_taken",
        control=f"{_FILE}::test_a_signing_secret_is_not_taken",
    ),
    Attack(
        name="import_endless_path",
        tries="has one path of 500 letters keep the import busy for ever",
        where=Where.LIMITS,
        refused_by=("patterns over a document take time by its length",),
        test=f"{_FILE}::test_a_path_keeps_nobody_busy",
        control=f"{_FILE}::test_a_path_keeps_nobody_busy",
    ),
    Attack(
        name="import_shared_work",
        tries="multiplies a small document's work by references, paths that share one of 300 parameters",
        where=Where.LIMITS,
        refused_by=("steps are counted", "the reader's process is ended"),
        test=f"{_FILE}::test_work_that_multiplies_ends",
        control=f"{_FILE}::test_work_that_multiplies_ends",
    ),
    Attack(
        name="import_poisoned_row",
        tries="has one imported row make the whole catalog unreadable for every request",
        where=Where.LIMITS,
        refused_by=("rows are read back when they are written", "a row that can't be read disables its service alone"),
        test=f"{_FILE}::test_a_poisoned_row_stops_nobody_else",
        control=f"{_FILE}::test_a_poisoned_row_stops_nobody_else",
    ),
    Attack(
        name="import_name_of_another",
        tries="has a request that names a service run on another one",
        where=Where.GRANTS,
        refused_by=("a service that the words name is never another one",),
        test=f"{_FILE}::test_a_named_service_is_no_other",
        control=f"{_FILE}::test_a_named_service_is_no_other",
    ),
)
