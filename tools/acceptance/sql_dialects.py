"""What people write on one engine only; see sql_statements."""

# ruff: noqa: E501 (one statement is one line, made of the schema's names)

from __future__ import annotations

from tools.acceptance.sql_statements import TEXT, Case, Pair, insert, name_of

_AUDIT = "CREATE TABLE audit_x (at_id varchar(60), what varchar(200))"


def _upsert(at: Pair, tail: str) -> str:
    row = dict(at.filled.values[at.child.name][0])
    return f"{insert(at.d, at.child.name, row)} {tail}"


def postgresql(at: Pair) -> list[Case]:
    c, p, fk, pk, key = at.c, at.p, at.fk, at.pk, at.key
    t, pt = at.free(at.child, TEXT), at.free(at.parent, TEXT)
    k0, k1 = (row[at.child.key[0]] for row in at.filled.values[at.child.name][:2])
    archive = (f"CREATE TABLE archive_x (LIKE {c})",)
    fire = "CREATE FUNCTION fire_x() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} END $$"
    parts = (
        "CREATE TABLE log_x (id int, at date NOT NULL, what text, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)",
        "CREATE TABLE log_x_1 PARTITION OF log_x FOR VALUES FROM ('2024-01-01') TO ('2024-07-01')",
        "CREATE TABLE log_x_2 PARTITION OF log_x FOR VALUES FROM ('2024-07-01') TO ('2025-01-01')",
        "INSERT INTO log_x VALUES (1, '2024-02-02', 'a'), (2, '2024-08-08', 'b')",
    )
    kinds = (
        "CREATE TYPE addr_x AS (street text, city text)",
        "CREATE TABLE kinds_x (id int PRIMARY KEY, tags text[], m int[][], j jsonb, a addr_x, at point, box box, area circle,"
        " r int4range, mr int4multirange, doc xml, ts tsvector, ip inet, iv interval, money money, b bit varying(8))",
        "INSERT INTO kinds_x VALUES (1, '{a,b}', '{{1,2},{3,4}}', '{\"a\": {\"b\": 1}}', ('s','c'), '(1,2)',"
        " '((0,0),(1,1))', '<(0,0),2>', '[1,5)', '{[1,3),[5,7)}', '<d>1</d>', 'cat dog', '10.0.0.1', '1 day', 3.5, B'101')",
    )
    stamp = (_AUDIT, fire.format("INSERT INTO audit_x VALUES (NEW.id::text, TG_OP); RETURN NEW;").replace("NEW.id", f"NEW.{key}"),
             f"CREATE TRIGGER fire_x AFTER INSERT OR UPDATE ON {c} FOR EACH ROW EXECUTE FUNCTION fire_x()")  # fmt: skip
    before = (fire.format(f"NEW.{t} := left(NEW.{t}, 3); RETURN NEW;"),
              f"CREATE TRIGGER fire_x BEFORE INSERT OR UPDATE ON {c} FOR EACH ROW EXECUTE FUNCTION fire_x()")  # fmt: skip
    view = (f"CREATE VIEW look_x AS SELECT {key}, {t} FROM {c}",)
    instead = (*view[:0], f"CREATE VIEW both_x AS SELECT a.{key} AS id, a.{t} AS what, b.{pt} AS who FROM {c} a JOIN {p} b"
               f" ON b.{pk} = a.{fk}", fire.format(f"UPDATE {c} SET {t} = NEW.what WHERE {key} = OLD.id; RETURN NEW;"),
               "CREATE TRIGGER fire_x INSTEAD OF UPDATE ON both_x FOR EACH ROW EXECUTE FUNCTION fire_x()")  # fmt: skip
    ident = ("CREATE TABLE ident_x (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, what text)", "CREATE SEQUENCE seq_x",
             "INSERT INTO ident_x (what) VALUES ('a'), ('b')", "CREATE TABLE seqd_x (id int PRIMARY KEY, what text)")  # fmt: skip
    heirs = ("CREATE TABLE base_x (id int PRIMARY KEY, what text)", "CREATE TABLE heir_x (more int) INHERITS (base_x)",
             "INSERT INTO base_x VALUES (1, 'a')", "INSERT INTO heir_x VALUES (2, 'b', 3)")  # fmt: skip
    chain = ("CREATE TABLE up_x (id int PRIMARY KEY)", "CREATE TABLE down_x (up int REFERENCES up_x)",
             "INSERT INTO up_x VALUES (1)", "INSERT INTO down_x VALUES (1)")  # fmt: skip
    secure = ("CREATE TABLE sec_x (id int PRIMARY KEY, who text)", "INSERT INTO sec_x VALUES (1, 'a'), (2, current_user)",
              "ALTER TABLE sec_x ENABLE ROW LEVEL SECURITY",
              "CREATE POLICY own ON sec_x USING (who = current_user)")  # fmt: skip
    k = at.child.key[0]
    return [
        Case("update from", f"UPDATE {c} AS a SET {t} = left(b.{pt}, 5) FROM {p} AS b WHERE b.{pk} = a.{fk}"),
        Case("delete using", f"DELETE FROM {c} a USING {p} b WHERE b.{pk} = a.{fk} AND a.{key} = {k0}"),
        Case("upsert update", _upsert(at, f"ON CONFLICT ({key}) DO UPDATE SET {t} = excluded.{t}")),
        Case("upsert nothing", _upsert(at, "ON CONFLICT DO NOTHING")),
        Case("insert returning", f"{insert(at.d, at.child.name, at.new(at.child, 1))} RETURNING *"),
        Case("update returning", f"UPDATE {c} SET {t} = 'r' WHERE {key} = {k0} RETURNING {key}, {t}"),
        Case("cte then update", f"WITH x AS (SELECT {pk} FROM {p}) UPDATE {c} SET {t} = 'c' WHERE {fk} IN (SELECT {pk} FROM x)"),
        Case("cte moves rows", f"WITH gone AS (DELETE FROM {c} WHERE {key} = {k0} RETURNING *) INSERT INTO archive_x SELECT * FROM gone", archive),
        Case("cte writes, select", f"WITH done AS (UPDATE {c} SET {t} = 'd' WHERE {key} = {k0} RETURNING {key}) SELECT count(*) FROM done"),
        Case("cte inserts twice", f"WITH a AS (UPDATE {c} SET {t} = 'e' WHERE {key} = {k0} RETURNING {fk}) UPDATE {p} SET {pt} = 'f' WHERE {pk} IN (SELECT {fk} FROM a)"),
        Case("merge update", f"MERGE INTO {c} a USING {p} b ON b.{pk} = a.{fk} WHEN MATCHED THEN UPDATE SET {t} = 'm'"),
        Case("merge delete", f"MERGE INTO {c} a USING (VALUES ({k0})) v(id) ON v.id = a.{key} WHEN MATCHED THEN DELETE"),
        Case("merge insert", "MERGE INTO seqd_x s USING (VALUES (1, 'a'), (2, 'b')) v(id, what) ON s.id = v.id"
             " WHEN MATCHED THEN UPDATE SET what = v.what WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.what)", ident),
        Case("select for update", f"SELECT * FROM {c} WHERE {key} = {k0} FOR UPDATE"),
        Case("information schema", "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"),
        Case("update through view", f"UPDATE look_x SET {t} = 'v' WHERE {key} = {k0}", view),
        Case("delete through view", f"DELETE FROM look_x WHERE {key} = {k0}", view),
        Case("instead of trigger", f"UPDATE both_x SET what = 'i' WHERE id = {k0}", instead),
        Case("after trigger", f"UPDATE {c} SET {t} = 'tr' WHERE {key} IN ({k0}, {k1})", stamp),
        Case("before trigger", f"UPDATE {c} SET {t} = 'trigger' WHERE {key} = {k0}", before),
        Case("create trigger", before[1].replace("fire_x BEFORE", "other_x BEFORE"), before),
        Case("partition insert", "INSERT INTO log_x VALUES (3, '2024-03-03', 'c'), (4, '2024-09-09', 'd')", parts),
        Case("partition moves", "UPDATE log_x SET at = '2024-10-10' WHERE id = 1", parts),
        Case("partition by name", "UPDATE log_x_1 SET what = 'n'", parts),
        Case("partition delete by name", "DELETE FROM log_x_2 WHERE id = 2", parts),
        Case("inheritance", "UPDATE base_x SET what = 'h'", heirs),
        Case("inheritance only", "UPDATE ONLY base_x SET what = 'o' WHERE id = 1", heirs),
        Case("inheriting child", "INSERT INTO heir_x VALUES (5, 'c', 1)", heirs),
        Case("nextval", "INSERT INTO seqd_x VALUES (nextval('seq_x'), 'n')", ident),
        Case("overriding", "INSERT INTO ident_x (id, what) OVERRIDING SYSTEM VALUE VALUES (50, 'o')", ident),
        Case("identity", "INSERT INTO ident_x (what) VALUES ('c') RETURNING id", ident),
        Case("array element", "UPDATE kinds_x SET tags[2] = 'z' WHERE id = 1", kinds),
        Case("array slice", "UPDATE kinds_x SET tags[1:2] = ARRAY['x', 'y'], m[1][2] = 9", kinds),
        Case("array append", "UPDATE kinds_x SET tags = array_append(tags, 'q') || ARRAY['w'] WHERE 'a' = ANY(tags)", kinds),
        Case("json set", "UPDATE kinds_x SET j = jsonb_set(j, '{a,b}', '2') || '{\"c\": 1}' WHERE j @> '{\"a\": {}}'", kinds),
        Case("json subscript", "UPDATE kinds_x SET j['a']['b'] = '5'", kinds),
        Case("json minus", "UPDATE kinds_x SET j = j - 'a' WHERE j ? 'a' AND j->'a'->>'b' = '1'", kinds),
        Case("composite", "UPDATE kinds_x SET a.city = 'Rome'", kinds),
        Case("composite row", "UPDATE kinds_x SET a = ROW('s2', 'c2') WHERE (a).city = 'c'", kinds),
        Case("geometric", "UPDATE kinds_x SET at = point(3, 4), area = '<(1,1),3>' WHERE at <-> point '(0,0)' < 5", kinds),
        Case("geometric insert", "INSERT INTO kinds_x (id, at, box) VALUES (2, point(1, 2), box(point(0,0), point(2,2)))", kinds),
        Case("ranges", "UPDATE kinds_x SET r = int4range(2, 9), mr = mr + '{[8,9)}' WHERE r @> 3", kinds),
        Case("xml", "UPDATE kinds_x SET doc = '<e/>'", kinds),
        Case("text search", "UPDATE kinds_x SET ts = to_tsvector('english', 'a fat cat') WHERE ts @@ to_tsquery('cat')", kinds),
        Case("intervals", "UPDATE kinds_x SET iv = iv + interval '2 hours', ip = '10.0.0.2', money = money * 2, b = B'111'", kinds),
        Case("truncate", "TRUNCATE old_x", ("CREATE TABLE old_x (id int)", "INSERT INTO old_x VALUES (1)")),
        Case("truncate cascade", "TRUNCATE up_x CASCADE", chain),
        Case("truncate restart", "TRUNCATE ident_x RESTART IDENTITY", ident),
        Case("row security", "UPDATE sec_x SET who = who WHERE id = 2", secure),
        Case("alter type", f"ALTER TABLE {c} ALTER COLUMN {t} TYPE text"),
        Case("drop column", f"ALTER TABLE {c} DROP COLUMN {t}"),
        Case("add constraint", f"ALTER TABLE {c} ADD CONSTRAINT ck_x CHECK ({key} IS NOT NULL)"),
        Case("create type", "CREATE TYPE mood_x AS ENUM ('ok', 'sad')"),
        Case("create function", "CREATE FUNCTION one_x() RETURNS int LANGUAGE sql AS 'SELECT 1'"),
        Case("materialized view", f"CREATE MATERIALIZED VIEW mat_x AS SELECT count(*) FROM {c}"),
        Case("generate series", "INSERT INTO seqd_x SELECT g, 'row ' || g FROM generate_series(1, 5) g", ident),
        Case("distinct on", f"SELECT DISTINCT ON ({fk}) {fk}, {key} FROM {c} ORDER BY {fk}, {key} DESC"),
        Case("lateral", f"SELECT b.{pk}, x.n FROM {p} b CROSS JOIN LATERAL (SELECT count(*) AS n FROM {c} a WHERE a.{fk} = b.{pk}) x"),
        Case("update values", f"UPDATE {c} a SET {t} = v.w FROM (VALUES ({k0}, 'one'), ({k1}, 'two')) v(id, w) WHERE v.id = a.{name_of(at.d, k)}"),
        Case("update row", f"UPDATE {c} SET ({t}, {fk}) = (SELECT 'u', {fk} FROM {c} WHERE {key} = {k1}) WHERE {key} = {k0}"),
    ]  # fmt: skip


def mariadb(at: Pair) -> list[Case]:
    c, p, fk, pk, key = at.c, at.p, at.fk, at.pk, at.key
    t, pt = at.free(at.child, TEXT), at.free(at.parent, TEXT)
    k0, k1 = (row[at.child.key[0]] for row in at.filled.values[at.child.name][:2])
    row = at.new(at.child, 6)
    sets = ", ".join(f"{name_of(at.d, name)} = {value}" for name, value in row.items())
    stamp = (
        _AUDIT,
        f"CREATE TRIGGER fire_x AFTER UPDATE ON {c} FOR EACH ROW INSERT INTO audit_x VALUES (NEW.{key}, 'updated')",
    )
    log = (_AUDIT, f"CREATE TRIGGER fire_x AFTER DELETE ON {c} FOR EACH ROW INSERT INTO audit_x (at_id, what) VALUES (OLD.{key}, OLD.{t})",
           f"CREATE TRIGGER fire_y AFTER INSERT ON {c} FOR EACH ROW INSERT INTO audit_x VALUES (NEW.{key}, 'new')")  # fmt: skip
    count = ("CREATE TABLE tally_x (id int PRIMARY KEY, n int)", "INSERT INTO tally_x VALUES (1, 0)",
             f"CREATE TRIGGER fire_x AFTER INSERT ON {c} FOR EACH ROW UPDATE tally_x SET n = n + 1 WHERE id = 1")  # fmt: skip
    before = (f"CREATE TRIGGER fire_x BEFORE UPDATE ON {c} FOR EACH ROW SET NEW.{t} = LEFT(NEW.{t}, 3)",)
    stamped = ("CREATE TABLE made_x (id int AUTO_INCREMENT PRIMARY KEY, what varchar(50), at datetime DEFAULT NULL, u char(36))",
               "CREATE TRIGGER fire_x BEFORE INSERT ON made_x FOR EACH ROW BEGIN SET NEW.at = NOW(); IF NEW.u IS NULL THEN"
               " SET NEW.u = UUID(); END IF; END")  # fmt: skip
    kinds = (
        "CREATE TABLE kinds_x (id int AUTO_INCREMENT PRIMARY KEY, e enum('a','b'), s set('x','y'), j json, g point, d decimal(10,3),"
        " b bit(4), ts timestamp NULL, y year, f float, bin varbinary(20), txt text, FULLTEXT (txt),"
        " up timestamp DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, twice int AS (id * 2) VIRTUAL)",
        "INSERT INTO kinds_x (e, s, j, g, d, b, ts, y, f, bin, txt) VALUES ('a', 'x,y', '{\"a\": 1}', POINT(1, 2), 1.5, b'101',"
        " '2024-01-01', 2020, 1.1, x'00ff', 'a fat cat'), ('b', '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    parts = ("CREATE TABLE log_x (id int, at date, what varchar(20), PRIMARY KEY (id, at)) PARTITION BY RANGE (YEAR(at))"
             " (PARTITION a VALUES LESS THAN (2024), PARTITION b VALUES LESS THAN MAXVALUE)",
             "INSERT INTO log_x VALUES (1, '2023-02-02', 'a'), (2, '2024-08-08', 'b')")  # fmt: skip
    view = (f"CREATE VIEW look_x AS SELECT {key}, {t} FROM {c}",)
    seq = ("CREATE SEQUENCE seq_x", "CREATE TABLE seqd_x (id int PRIMARY KEY, what varchar(20))")
    keyless = (
        "CREATE TABLE bare_x (what varchar(20), n int)",
        "INSERT INTO bare_x VALUES ('a', 1), ('a', 1), ('b', 2)",
    )
    old = ("CREATE TABLE old_x (id int PRIMARY KEY, body varchar(20))", "INSERT INTO old_x VALUES (1, 'a'), (2, NULL)")
    odd = (
        "CREATE TABLE aria_x (id int PRIMARY KEY, body varchar(20)) ENGINE=Aria",
        "INSERT INTO aria_x VALUES (1, 'a')",
    )
    hist = (
        "CREATE TABLE hist_x (id int PRIMARY KEY, body varchar(20)) WITH SYSTEM VERSIONING",
        "INSERT INTO hist_x VALUES (1, 'a')",
    )
    return [
        Case("update join", f"UPDATE {c} a JOIN {p} b ON b.{pk} = a.{fk} SET a.{t} = LEFT(b.{pt}, 5) WHERE a.{key} = {k0}"),
        Case("update join both", f"UPDATE {c} a JOIN {p} b ON b.{pk} = a.{fk} SET a.{t} = 'aa', b.{pt} = 'bb' WHERE a.{key} = {k0}"),
        Case("update left join", f"UPDATE {c} a LEFT JOIN {p} b ON b.{pk} = a.{fk} SET a.{t} = 'none' WHERE b.{pk} IS NULL"),
        Case("update comma join", f"UPDATE {c} a, {p} b SET a.{t} = 'comma' WHERE b.{pk} = a.{fk}"),
        Case("update join derived", f"UPDATE {c} a JOIN (SELECT {fk} AS g, COUNT(*) AS n FROM {c} GROUP BY {fk}) x ON x.g = a.{fk} SET a.{t} = x.n"),
        Case("delete join", f"DELETE a FROM {c} a JOIN {p} b ON b.{pk} = a.{fk} WHERE a.{key} = {k0}"),
        Case("delete from both", f"DELETE a, b FROM {c} a JOIN old_x b ON b.id = 1 WHERE a.{key} = {k0}", old),
        Case("delete using", f"DELETE FROM a USING {c} AS a INNER JOIN {p} AS b ON b.{pk} = a.{fk} WHERE a.{key} = {k1}"),
        Case("upsert", _upsert(at, f"ON DUPLICATE KEY UPDATE {t} = VALUES({t})")),
        Case("upsert expression", _upsert(at, f"ON DUPLICATE KEY UPDATE {t} = CONCAT(LEFT({t}, 2), '!')")),
        Case("insert ignore", _upsert(at, "").replace("INSERT INTO", "INSERT IGNORE INTO")),
        Case("replace", _upsert(at, "").replace("INSERT INTO", "REPLACE INTO")),
        Case("insert set", f"INSERT INTO {c} SET {sets}"),
        Case("insert returning", f"{insert(at.d, at.child.name, row)} RETURNING {key}"),
        Case("insert select", f"INSERT INTO seqd_x SELECT {ord_of(k0)}, LEFT({t}, 9) FROM {c} WHERE {key} = {k0}", seq),
        Case("update limit", f"UPDATE {c} SET {t} = 'lim' ORDER BY {key} DESC LIMIT 2"),
        Case("delete limit", f"DELETE FROM {c} ORDER BY {key} LIMIT 1"),
        Case("update self subquery", f"UPDATE {c} SET {t} = 's' WHERE {key} = (SELECT m FROM (SELECT MAX({key}) AS m FROM {c}) x)"),
        Case("select for update", f"SELECT * FROM {c} WHERE {key} = {k0} FOR UPDATE"),
        Case("show tables", "SHOW TABLES"),
        Case("describe", f"DESCRIBE {c}"),
        Case("information schema", "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"),
        Case("group concat", f"SELECT {fk}, GROUP_CONCAT({key} ORDER BY {key} SEPARATOR '|') FROM {c} GROUP BY {fk}"),
        Case("update through view", f"UPDATE look_x SET {t} = 'v' WHERE {key} = {k0}", view),
        Case("after update trigger", f"UPDATE {c} SET {t} = 'tr' WHERE {key} IN ({k0}, {k1})", stamp),
        Case("after delete trigger", f"DELETE FROM {c} WHERE {key} = {k0}", log),
        Case("after insert trigger", insert(at.d, at.child.name, row), log),
        Case("counting trigger", insert(at.d, at.child.name, row), count),
        Case("before trigger", f"UPDATE {c} SET {t} = 'trigger' WHERE {key} = {k0}", before),
        Case("stamping trigger", "INSERT INTO made_x (what) VALUES ('a'), ('b')", stamped),
        Case("create trigger", before[0].replace("fire_x", "other_x")),
        Case("enum and set", "UPDATE kinds_x SET e = 'b', s = 'y' WHERE FIND_IN_SET('x', s)", kinds),
        Case("json set", "UPDATE kinds_x SET j = JSON_SET(j, '$.a', 5) WHERE JSON_EXTRACT(j, '$.a') = 1", kinds),
        Case("geometry", "UPDATE kinds_x SET g = ST_GeomFromText('POINT(3 4)') WHERE ST_X(g) = 1", kinds),
        Case("fulltext", "UPDATE kinds_x SET txt = 'dog' WHERE MATCH(txt) AGAINST ('cat')", kinds),
        Case("dates", "UPDATE kinds_x SET ts = DATE_ADD(ts, INTERVAL 1 DAY), y = YEAR(NOW()), d = ROUND(d, 1) WHERE ts < NOW()", kinds),
        Case("str_to_date", "INSERT INTO kinds_x (ts, txt) VALUES (STR_TO_DATE('01,5,2013', '%d,%m,%Y'), CONCAT_WS('-', 'a', 'b'))", kinds),
        Case("user variable", "SET @n = 0; UPDATE kinds_x SET d = (@n := @n + 1)", kinds),
        Case("partition insert", "INSERT INTO log_x VALUES (3, '2023-03-03', 'c'), (4, '2024-09-09', 'd')", parts),
        Case("partition moves", "UPDATE log_x SET at = '2024-10-10' WHERE id = 1", parts),
        Case("partition named", "DELETE FROM log_x PARTITION (a)", parts),
        Case("sequence", "INSERT INTO seqd_x VALUES (NEXT VALUE FOR seq_x, 'n')", seq),
        Case("nextval", "INSERT INTO seqd_x VALUES (NEXTVAL(seq_x), 'n')", seq),
        Case("keyless update", "UPDATE bare_x SET n = n + 1 WHERE what = 'a'", keyless),
        Case("keyless delete", "DELETE FROM bare_x WHERE n = 1", keyless),
        Case("truncate", "TRUNCATE TABLE old_x", old),
        Case("other engine", "UPDATE aria_x SET body = 'b'", odd),
        Case("system versioned", "UPDATE hist_x SET body = 'b'", hist),
        Case("modify column", f"ALTER TABLE {c} MODIFY COLUMN {t} TEXT"),
        Case("change column", "ALTER TABLE old_x CHANGE body words varchar(40)", old),
        Case("drop column", "ALTER TABLE old_x DROP COLUMN body", old),
        Case("rename table", "RENAME TABLE old_x TO older_x", old),
        Case("create like", f"CREATE TABLE like_x LIKE {c}"),
        Case("drop index", "DROP INDEX ix_x ON old_x", (*old, "CREATE INDEX ix_x ON old_x (body)")),
        Case("create auto increment", "CREATE TABLE auto_x (id int NOT NULL AUTO_INCREMENT, what varchar(50), PRIMARY KEY (id)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"),
        Case("add foreign key", "ALTER TABLE old_x ADD CONSTRAINT fk_x FOREIGN KEY (id) REFERENCES up_x (id)",
             (*old, "CREATE TABLE up_x (id int PRIMARY KEY)", "INSERT INTO up_x VALUES (1), (2)")),
    ]  # fmt: skip


def ord_of(value: str) -> str:
    return value if value.isdigit() else "1"


def sqlite(at: Pair) -> list[Case]:
    c, p, fk, pk, key = at.c, at.p, at.fk, at.pk, at.key
    t, pt = at.free(at.child, TEXT), at.free(at.parent, TEXT)
    k0, k1 = (row[at.child.key[0]] for row in at.filled.values[at.child.name][:2])
    row = at.new(at.child, 6)
    stamp = (
        _AUDIT,
        f"CREATE TRIGGER fire_x AFTER UPDATE ON {c} BEGIN INSERT INTO audit_x VALUES (new.{key}, 'updated'); END",
    )
    view = (f"CREATE VIEW look_x AS SELECT {key} AS id, {t} AS what FROM {c}",
            f"CREATE TRIGGER fire_x INSTEAD OF UPDATE ON look_x BEGIN UPDATE {c} SET {t} = new.what WHERE {key} = old.id; END")  # fmt: skip
    fts = (
        "CREATE VIRTUAL TABLE docs_x USING fts5(title, body)",
        "INSERT INTO docs_x VALUES ('a', 'a fat cat'), ('b', 'a dog')",
    )
    linked = ("CREATE TABLE posts_x (id INTEGER PRIMARY KEY, title TEXT, body TEXT)",
              "INSERT INTO posts_x VALUES (1, 'a', 'a fat cat'), (2, 'b', 'a dog')",
              "CREATE VIRTUAL TABLE posts_fts USING fts5(title, body, content='posts_x', content_rowid='id')",
              "INSERT INTO posts_fts (posts_fts) VALUES ('rebuild')",
              "CREATE TRIGGER posts_ai AFTER INSERT ON posts_x BEGIN INSERT INTO posts_fts (rowid, title, body) VALUES"
              " (new.id, new.title, new.body); END",
              "CREATE TRIGGER posts_au AFTER UPDATE ON posts_x BEGIN INSERT INTO posts_fts (posts_fts, rowid, title, body)"
              " VALUES ('delete', old.id, old.title, old.body); INSERT INTO posts_fts (rowid, title, body) VALUES"
              " (new.id, new.title, new.body); END")  # fmt: skip
    tree = (
        "CREATE VIRTUAL TABLE boxes_x USING rtree(id, minx, maxx, miny, maxy)",
        "INSERT INTO boxes_x VALUES (1, 0, 1, 0, 1)",
    )
    defer = ("CREATE TABLE up_x (id INTEGER PRIMARY KEY)", "CREATE TABLE down_x (id INTEGER PRIMARY KEY, up INTEGER"
             " REFERENCES up_x (id) DEFERRABLE INITIALLY DEFERRED)")  # fmt: skip
    kinds = ("CREATE TABLE kinds_x (id INTEGER PRIMARY KEY AUTOINCREMENT, j TEXT, n INTEGER, r REAL, b BLOB, twice INT AS (n * 2))",
             "INSERT INTO kinds_x (j, n, r, b) VALUES ('{\"a\": 1}', 1, 1.5, x'00ff'), (NULL, NULL, NULL, NULL)")  # fmt: skip
    without = (
        "CREATE TABLE pairs_x (a TEXT, b INT, v, PRIMARY KEY (a, b)) WITHOUT ROWID",
        "INSERT INTO pairs_x VALUES ('a', 1, 1), ('b', 2, 2)",
    )
    strict = (
        "CREATE TABLE strict_x (id INTEGER PRIMARY KEY, what TEXT) STRICT",
        "INSERT INTO strict_x VALUES (1, 'a')",
    )
    old = ("CREATE TABLE old_x (id INTEGER PRIMARY KEY, body TEXT)", "INSERT INTO old_x VALUES (1, 'a'), (2, NULL)")
    return [
        Case("update from", f"UPDATE {c} SET {t} = substr(b.{pt}, 1, 5) FROM {p} AS b WHERE b.{pk} = {c}.{fk}"),
        Case("upsert update", _upsert(at, f"ON CONFLICT ({key}) DO UPDATE SET {t} = excluded.{t}")),
        Case("upsert nothing", _upsert(at, "ON CONFLICT DO NOTHING")),
        Case("insert or ignore", _upsert(at, "").replace("INSERT INTO", "INSERT OR IGNORE INTO")),
        Case("insert or replace", _upsert(at, "").replace("INSERT INTO", "INSERT OR REPLACE INTO")),
        Case("replace", _upsert(at, "").replace("INSERT INTO", "REPLACE INTO")),
        Case("insert returning", f"{insert(at.d, at.child.name, row)} RETURNING *"),
        Case("insert default values", "INSERT INTO kinds_x DEFAULT VALUES", kinds),
        Case("update or ignore", f"UPDATE OR IGNORE {c} SET {key} = {k1} WHERE {key} = {k0}"),
        Case("cte update", f"WITH x AS (SELECT {pk} FROM {p}) UPDATE {c} SET {t} = 'c' WHERE {fk} IN (SELECT {pk} FROM x)"),
        Case("cte insert", "WITH RECURSIVE n(x) AS (SELECT 10 UNION ALL SELECT x + 1 FROM n WHERE x < 15) INSERT INTO old_x SELECT x, 'row ' || x FROM n", old),
        Case("update limit", f"UPDATE {c} SET {t} = 'lim' WHERE {key} IN (SELECT {key} FROM {c} ORDER BY {key} LIMIT 2)"),
        Case("after trigger", f"UPDATE {c} SET {t} = 'tr' WHERE {key} = {k0}", stamp),
        Case("instead of trigger", f"UPDATE look_x SET what = 'i' WHERE id = {k0}", view),
        Case("create trigger", stamp[1], (stamp[0],)),
        Case("fts insert", "INSERT INTO docs_x VALUES ('c', 'new words')", fts),
        Case("fts update", "UPDATE docs_x SET body = 'other words' WHERE rowid = 1", fts),
        Case("fts delete match", "DELETE FROM docs_x WHERE docs_x MATCH 'cat'", fts),
        Case("fts select", "SELECT title, snippet(docs_x, 1, '[', ']', '…', 5) FROM docs_x WHERE docs_x MATCH 'cat' ORDER BY rank", fts),
        Case("fts content insert", "INSERT INTO posts_x VALUES (3, 'c', 'new words')", linked),
        Case("fts content update", "UPDATE posts_x SET body = 'changed words' WHERE id = 1", linked),
        Case("fts rebuild", "INSERT INTO docs_x (docs_x) VALUES ('rebuild')", fts),
        Case("fts optimize", "INSERT INTO docs_x (docs_x) VALUES ('optimize')", fts),
        Case("create fts", "CREATE VIRTUAL TABLE words_x USING fts5(body)"),
        Case("rtree insert", "INSERT INTO boxes_x VALUES (2, 5, 6, 5, 6)", tree),
        Case("rtree update", "UPDATE boxes_x SET maxx = 9 WHERE minx >= 0", tree),
        Case("rtree delete", "DELETE FROM boxes_x WHERE id = 1", tree),
        Case("deferred keys", "INSERT INTO down_x VALUES (1, 7); INSERT INTO up_x VALUES (7)", defer),
        Case("json set", "UPDATE kinds_x SET j = json_set(j, '$.a', 5) WHERE json_extract(j, '$.a') = 1", kinds),
        Case("json arrow", "UPDATE kinds_x SET n = j ->> '$.a', r = r * 2.0, b = zeroblob(3) WHERE j IS NOT NULL", kinds),
        Case("dates", "UPDATE kinds_x SET j = strftime('%Y-%m-%d', 'now'), n = unixepoch() WHERE id = 1", kinds),
        Case("current timestamp", "UPDATE kinds_x SET j = CURRENT_TIMESTAMP", kinds),
        Case("printf", "UPDATE kinds_x SET j = printf('%05d', n), r = iif(n > 0, 1.0, 2.0), n = abs(n) % 3", kinds),
        Case("random", "UPDATE kinds_x SET n = abs(random()) % 10", kinds),
        Case("without rowid", "UPDATE pairs_x SET b = b + 10, v = NULL; DELETE FROM pairs_x WHERE a = 'b'", without),
        Case("strict", "UPDATE strict_x SET what = hex(what) || char(65) WHERE what GLOB 'a*'", strict),
        Case("rowid", "UPDATE old_x SET body = 'r' WHERE rowid = 2; DELETE FROM old_x WHERE _rowid_ = 1", old),
        Case("drop column", "ALTER TABLE old_x DROP COLUMN body", old),
        Case("rename table", "ALTER TABLE old_x RENAME TO older_x", old),
        Case("drop index", "DROP INDEX ix_x", (*old, "CREATE INDEX ix_x ON old_x (body)")),
        Case("partial index", "CREATE UNIQUE INDEX ix_y ON old_x (body) WHERE body IS NOT NULL", old),
        Case("rebuild table", "CREATE TABLE new_x (id INTEGER PRIMARY KEY, body TEXT NOT NULL DEFAULT ''); INSERT INTO new_x SELECT id, coalesce(body, '') FROM old_x; DROP TABLE old_x; ALTER TABLE new_x RENAME TO old_x", old),
        Case("pragma table_info", "SELECT name, type FROM pragma_table_info('old_x')", old),
        Case("sqlite_master", "SELECT name FROM sqlite_master WHERE type = 'table'"),
        Case("group concat", f"SELECT {fk}, group_concat({key}, '|') FROM {c} GROUP BY {fk}"),
        Case("vacuum", "VACUUM"),
    ]  # fmt: skip
