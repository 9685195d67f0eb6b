"""What scripts for a booking system are made of: the next free row of a queue, the number of the row that was just put
in, rows from JSON, rows told apart by where they are. Done, undone, done again and undone: each exactly."""

# SQL here is made of the tests' own names.

from __future__ import annotations

from collections.abc import Iterator

import pytest

from policies.errors import Conflict, InvalidInput, Unsupported
from tests.services.postgres import Postgres
from tests.support.databases import BACK_AND_FORTH, Asked, PostgresGround

BOOKINGS = (
    "CREATE TABLE guest (id serial PRIMARY KEY, email text UNIQUE, points int NOT NULL DEFAULT 0 CHECK (points >= 0))",
    "CREATE TABLE booking (id bigserial PRIMARY KEY, guest int NOT NULL REFERENCES guest ON DELETE CASCADE, state text"
    " NOT NULL DEFAULT 'new', nights int GENERATED ALWAYS AS (until - since) STORED, since date NOT NULL, until date"
    " NOT NULL, extra jsonb NOT NULL DEFAULT '{}')",
    "CREATE TABLE payment (booking bigint REFERENCES booking ON DELETE CASCADE, amount numeric(10,2), note text)",
    "CREATE TABLE rate (day date PRIMARY KEY, price numeric(10,2))",
    "CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.extra := NEW.extra || '{\"t\": 1}';"
    " RETURN NEW; END $$",
    "CREATE TRIGGER touch BEFORE UPDATE ON booking FOR EACH ROW EXECUTE FUNCTION touch()",
    "INSERT INTO guest (email) VALUES ('a@x'), ('b@x'), (NULL)",
    "INSERT INTO booking (guest, state, since, until) VALUES (1, 'new', '2024-01-01', '2024-01-03'), (2, 'new',"
    " '2024-02-01', '2024-02-02'), (2, 'done', '2023-01-01', '2023-01-09')",
    "INSERT INTO payment VALUES (1, 5, 'x'), (1, 5, 'x'), (1, 5, 'x'), (3, 7, NULL)",
    "INSERT INTO rate VALUES ('2024-12-30', 80)",
)
FORMS = {
    "the next of a queue": "UPDATE booking SET state = 'taken' WHERE id = (SELECT id FROM booking WHERE state = 'new'"
    " ORDER BY since LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id",
    "the next of a queue, by WITH": "WITH next AS (SELECT b.id FROM booking b JOIN guest g ON g.id = b.guest WHERE"
    " b.state = 'new' ORDER BY b.since LIMIT 1 FOR UPDATE OF b SKIP LOCKED) UPDATE booking SET state = 'taken' FROM"
    " next WHERE next.id = booking.id",
    "taken from a queue": "DELETE FROM payment WHERE ctid IN (SELECT ctid FROM payment WHERE booking = 1 LIMIT 2 FOR"
    " UPDATE SKIP LOCKED) RETURNING *",
    "the key that was counted up": "INSERT INTO booking (guest, since, until) VALUES (3, '2024-05-01', '2024-05-02');"
    " INSERT INTO payment VALUES (currval('booking_id_seq'), 9, 'first'), (lastval(), 1, 'second'),"
    " (currval(pg_get_serial_sequence('booking', 'id')), 2, 'third')",
    "twins": "DELETE FROM payment a USING payment b WHERE a.ctid < b.ctid AND a.booking = b.booking AND a.note ="
    " b.note",
    "twins by their first": "DELETE FROM payment WHERE ctid NOT IN (SELECT min(ctid) FROM payment GROUP BY booking)",
    "rows from JSON": "INSERT INTO rate (day, price) SELECT r.day, r.price FROM jsonb_to_recordset("
    '\'[{"day": "2024-12-30", "price": 90}, {"day": "2024-12-31", "price": 120.5}]\') AS r(day date, price numeric)'
    " ON CONFLICT (day) DO UPDATE SET price = EXCLUDED.price",
    "rows behind a join": "INSERT INTO rate (day, price) SELECT d::date, g.points FROM guest g CROSS JOIN"
    " generate_series('2024-12-29'::date, '2024-12-31'::date, interval '1 day') AS d WHERE g.id = 1"
    " ON CONFLICT (day) DO NOTHING",
    "rows behind a join, without WHERE": "INSERT INTO rate (day, price) SELECT d::date, 1 FROM rate CROSS JOIN"
    " generate_series('2024-12-29'::date, '2024-12-31'::date, interval '1 day') AS d ON CONFLICT (day) DO NOTHING",
    "values of WITH": "WITH new(id, state) AS (VALUES (1, 'paid'), (2, 'void')) UPDATE booking SET state = new.state"
    " FROM new WHERE new.id = booking.id",
    "savepoints and settings": "BEGIN; SET LOCAL lock_timeout = '2s'; SAVEPOINT a; UPDATE guest SET points = 5 WHERE"
    " id = 1; RELEASE SAVEPOINT a; COMMIT",
}


@pytest.fixture(scope="module")
def shared(postgres: Postgres) -> Iterator[PostgresGround]:
    yield PostgresGround(postgres)


@pytest.fixture
def ground(shared: PostgresGround) -> PostgresGround:
    shared.empty()
    shared.execute(*BOOKINGS)
    return shared


@pytest.mark.sampled(5)
@pytest.mark.promise(75)
@pytest.mark.parametrize("form", FORMS)
def test_it_is_taken_back_and_done_again(ground: PostgresGround, form: str) -> None:
    before = ground.dump()
    asked = Asked(ground, FORMS[form])
    asked.run()
    after = ground.dump()
    assert after != before
    for verb, wanted in zip(BACK_AND_FORTH, (before, after, before), strict=True):
        asked.revert(verb)
        assert ground.dump() == wanted


def test_a_row_that_somebody_holds_is_passed_over(ground: PostgresGround) -> None:
    """SKIP LOCKED stays, so that what is taken is the row that the statement takes at that moment, and no other."""
    asked = Asked(ground, FORMS["taken from a queue"])
    before = ground.dump()
    with ground.made.connect(autocommit=False) as other:
        other.execute(b"SELECT 1 FROM payment WHERE ctid = '(0,1)' FOR UPDATE")
        ran = asked.run()
        other.rollback()
    assert len(ran.results[0].rows) == 2
    assert ground.rows("SELECT ctid::text FROM payment ORDER BY ctid") == [("(0,1)",), ("(0,4)",)]
    asked.revert("undo")
    assert ground.dump() == before


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("form", "theirs"),
    [
        ("the next of a queue", "UPDATE booking SET state = 'theirs' WHERE id = 1"),
        ("the key that was counted up", "UPDATE payment SET amount = 100 WHERE note = 'first'"),
        ("rows from JSON", "UPDATE rate SET price = 1 WHERE day = '2024-12-31'"),
        ("values of WITH", "DELETE FROM booking WHERE id = 2"),
    ],
)
def test_what_others_did_since_is_left_alone(ground: PostgresGround, form: str, theirs: str) -> None:
    asked = Asked(ground, FORMS[form])
    asked.run()
    ground.execute(theirs)
    there = ground.dump()
    with pytest.raises(Conflict):
        asked.revert("undo")
    assert ground.dump() == there


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT id FROM booking FOR UPDATE SKIP LOCKED", "SELECT with locks"),
        ("UPDATE booking SET state = 'x' WHERE guest IN (SELECT id FROM guest FOR UPDATE)", "doesn't write"),
        ("SELECT currval('booking_id_seq')", "anything but an INSERT before it"),
        ("INSERT INTO guest (email) VALUES ('c'); SELECT setval('guest_id_seq', 1)", "setval"),
        ("EXPLAIN ANALYZE UPDATE booking SET state = 'x'", "writes runs it"),
        ("EXPLAIN (ANALYZE) WITH d AS (DELETE FROM payment RETURNING *) SELECT * FROM d", "writes runs it"),
        ("UPDATE booking SET state = 'x'; SAVEPOINT a; DELETE FROM payment; ROLLBACK TO a; RELEASE a", "ROLLBACK"),
        ("SET LOCAL session_replication_role = replica; DELETE FROM guest", "SET"),
        ("SELECT xmin FROM guest", "no column xmin"),
    ],
)
def test_what_cant_be_kept_is_refused_beforehand(ground: PostgresGround, text: str, said: str) -> None:
    before = ground.dump()
    with pytest.raises((Unsupported, InvalidInput), match=said) as caught:
        Asked(ground, text).plan()
    assert caught.value.next_step
    assert ground.dump() == before


def test_explain_of_a_write_writes_nothing(ground: PostgresGround) -> None:
    before = ground.dump()
    for text in (
        "EXPLAIN UPDATE booking SET state = 'x'",
        "EXPLAIN (COSTS OFF, FORMAT JSON) DELETE FROM guest",
        "EXPLAIN WITH d AS (DELETE FROM payment RETURNING *) SELECT * FROM d",
        "EXPLAIN VERBOSE INSERT INTO guest (email) VALUES ('z')",
        "EXPLAIN (ANALYZE, BUFFERS) SELECT count(*) FROM booking",
        "EXPLAIN ANALYZE SELECT * FROM guest",
    ):
        asked = Asked(ground, text)
        assert asked.plan().program.reads_only
        ran = asked.run()
        assert ran.results[0].rows and not ran.reached
    assert ground.dump() == before
    assert ground.rows("SELECT nextval('guest_id_seq')") == [(4,)]
