"""Attacks on the daemon's files on disk, by name: what each tries. How each is made is in state_scene.py."""

from __future__ import annotations

from tests.adversarial.registry import Attack, Where
from tests.adversarial.state_scene import FORGERIES

_TRIES = {
    "a_revoked_grant_of_yesterday": "put back state.db with its journal.head, so that a revoked grant lives",
    "a_removed_agent_of_yesterday": "the same, so that a removed agent's token is a name again",
    "an_unforbidden_yesterday": "the same, so that a rule that forbids was never applied",
    "a_log_that_is_gone": "delete the log and its head, so that nothing was ever forbidden",
    "a_longer_log_of_another_life": "put in place a log that went on from an earlier copy, longer than the newest",
    "a_cut_log_with_its_older_head": "cut the newest rows, set the tables back, and put back the older head",
    "a_write_ahead_log_of_yesterday": "put back the write-ahead log too, of a daemon that was running",
}

_TESTS = "tests/adversarial/test_state.py"

ROWS: tuple[Attack, ...] = tuple(
    Attack(
        name,
        _TRIES[name],
        Where.STATE,
        ("what the vault knows of the log",),
        f"{_TESTS}::test_it_is_refused_and_gives_nothing_back[{name}]",
        f"{_TESTS}::test_the_control_without_what_the_vault_knows[{name}]",
    )
    for name in FORGERIES
)

_FILES = "tests/adversarial/test_state_files.py"
_PRIVATE = "each file is ours alone, or nothing starts"


def _placed(name: str, tries: str) -> Attack:
    tests = (f"{_FILES}::test_another_user_reads_nothing[{name}]", f"{_FILES}::test_control_another_user[{name}]")
    return Attack(name, tries, Where.STATE, (_PRIVATE,), *tests)


ROWS += (
    _placed("a_database_elsewhere", "leave a link to a place of others where the log was, and read what comes into it"),
    _placed("a_database_open_to_all", "open the log to all, and read it by a second name"),
    _placed("a_database_of_another_user", "give the log to another user, and read it by a second name"),
    Attack(
        "a_replaced_socket",
        "put a socket of its own where agents give their tokens",
        Where.STATE,
        ("a folder that nobody else changes",),
        f"{_FILES}::test_nobody_replaces_the_agents_socket",
        f"{_FILES}::test_control_replaced_socket",
    ),
    Attack(
        "a_trigger_in_the_log",
        "leave a trigger that gives each new action to another agent",
        Where.STATE,
        ("the file holds tables alone",),
        f"{_FILES}::test_a_trigger_gives_nobody_anything",
        f"{_FILES}::test_control_trigger",
    ),
)

_VAULT = "tests/adversarial/test_vault_put_back.py"


def _put_back(name: str, tries: str) -> Attack:
    tests = (f"{_VAULT}::test_it_is_refused[{name}]", f"{_VAULT}::test_control[{name}]")
    return Attack(name, tries, Where.STATE, ("what the log notes of the vault",), *tests)


ROWS += (
    _put_back("an_approval_passphrase_of_before", "put vault.db back, so that a passphrase that leaked counts"),
    _put_back("guesses_that_are_forgotten", "put vault.db back, so that wrong passphrases aren't counted"),
    _put_back("a_reset_that_was_ended", "put vault.db back, so that a reset of passkeys that one ended goes on"),
)

_SNAPSHOTS = "tests/adversarial/test_snapshot_files.py"


def _planted(name: str, tries: str) -> Attack:
    tests = (f"{_SNAPSHOTS}::test_nothing_of_it_runs[{name}]", f"{_SNAPSHOTS}::test_control[{name}]")
    return Attack(name, tries, Where.STATE, ("snapshots are used as they were made",), *tests)


ROWS += (
    _planted("a_hook", "leave a hook in a folder of snapshots, which git runs"),
    _planted("a_remote", "leave a remote there, which git asks by a command once a snapshot is missing"),
    _planted("another_configuration", "leave the name of another configuration there, which has a hook"),
    Attack(
        "snapshots_elsewhere",
        "leave a link to a place of others where contents of snapshots come into",
        Where.STATE,
        ("snapshots are used as they were made",),
        f"{_SNAPSHOTS}::test_nothing_comes_elsewhere",
        f"{_SNAPSHOTS}::test_control_elsewhere",
    ),
)

_RUNNING = "tests/adversarial/test_state_running.py"


def _placed_under_it(name: str, tries: str) -> Attack:
    tests = (f"{_RUNNING}::test_it_is_refused[{name}]", f"{_RUNNING}::test_control")
    return Attack(name, tries, Where.STATE, ("the chain, and what the vault knows of the log",), *tests)


ROWS += (
    _placed_under_it("log_exchanged_while_it_is_written", "exchange the log and its head while the daemon runs"),
    _placed_under_it("log_cut_while_it_is_written", "cut the log to nothing while the daemon runs"),
    _placed_under_it("newest_rows_cut_while_it_is_written", "cut the write-ahead log to nothing while the daemon runs"),
    _placed_under_it("head_led_elsewhere", "leave a link where the log's head is, while the daemon runs"),
    Attack(
        "a_vault_exchanged_while_it_is_open",
        "exchange vault.db while the daemon runs",
        Where.STATE,
        ("a header that isn't the one in memory",),
        f"{_RUNNING}::test_a_vault_that_was_exchanged_is_written_no_more",
        f"{_RUNNING}::test_control_vault",
    ),
)
