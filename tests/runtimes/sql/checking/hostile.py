"""SQL that has to be refused, by dialect. Each line is one attempt; none may come out of `check` as a Program."""

from __future__ import annotations

EVERYWHERE = """
BEGIN
COMMIT
ROLLBACK
SAVEPOINT a
RELEASE SAVEPOINT a
START TRANSACTION
SELECT 1; COMMIT; DROP TABLE users
BEGIN; SELECT 1
BEGIN; COMMIT
BEGIN; SELECT 1; ROLLBACK
BEGIN; SELECT 1; COMMIT; DELETE FROM users
BEGIN; SELECT 1; COMMIT; BEGIN; SELECT 2; COMMIT
SELECT 1; COMMIT
BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT 1; COMMIT
BEGIN; SELECT 1; COMMIT AND CHAIN
'begin'; SELECT 1; COMMIT
"begin"; SELECT 1; COMMIT
UPDATE orders SET status = 'x'; ROLLBACK
GRANT ALL ON orders TO public
REVOKE ALL ON orders FROM public
CREATE USER eve
CREATE DATABASE other
DROP DATABASE shop
CREATE FUNCTION f() RETURNS int AS 'x' LANGUAGE c
CREATE TRIGGER t AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION f()
CREATE PROCEDURE p() SELECT 1
CALL p()
EXECUTE p
PREPARE p AS SELECT 1
DEALLOCATE p
SET x = 1
EXPLAIN ANALYZE DELETE FROM orders
EXPLAIN CREATE TABLE x AS SELECT 1
EXPLAIN EXECUTE p
EXPLAIN DROP TABLE orders
SAVEPOINT a; UPDATE orders SET total = 1; ROLLBACK TO a; RELEASE a
SAVEPOINT a; UPDATE orders SET total = 1; RELEASE b
SAVEPOINT a; SAVEPOINT b; SELECT 1; RELEASE a; RELEASE b
SAVEPOINT a; RELEASE a
SAVEPOINT a; UPDATE orders SET total = 1
SET @@x = 1
VACUUM
LOCK TABLE orders
SELECT * FROM orders FOR UPDATE NOWAIT
SELECT * FROM (SELECT * FROM orders FOR UPDATE) x
SELECT * FROM other.orders
SELECT * FROM a.b.c.orders
SELECT * FROM nowhere
CREATE TABLE "pg_catalog.pg_authid" (x int)
CREATE TABLE "stock.items" (x int)
SELECT nothing FROM orders
SELECT o.nothing FROM orders AS o
SELECT users.name FROM orders
SELECT (SELECT nothing FROM users) FROM orders
UPDATE orders SET nothing = 1
UPDATE orders SET status = nothing
INSERT INTO orders (nothing) VALUES (1)
INSERT INTO orders (status, status) VALUES (1, 2)
UPDATE orders SET status = 1, status = 2
DELETE FROM orders WHERE nothing = 1
UPDATE nowhere SET x = 1
SELECT unknown_function(1)
SELECT "lower"(status) FROM orders
SELECT public.lower(status) FROM orders
SELECT orders.lower(status) FROM orders
SELECT lower(unknown_function(status)) FROM orders
SELECT 1 WHERE EXISTS (SELECT unknown_function(1))
SELECT * FROM unknown_function(1)
SELECT * FROM lower('x')
INSERT INTO orders (status) VALUES (unknown_function(1))
UPDATE orders SET status = (SELECT unknown_function(1))
CREATE TABLE t (x int DEFAULT (unknown_function(1)))
CREATE TABLE t (x int CHECK (unknown_function(x)))
CREATE TABLE t (x int CHECK (x IN (SELECT id FROM users)))
CREATE TEMPORARY TABLE orders (x int)
CREATE TEMP TABLE t (x int)
CREATE TABLE other.t (x int)
CREATE TABLE t (x nonsense_type)
CREATE INDEX i ON nowhere (x)
CREATE INDEX i ON orders (unknown_function(status))
CREATE VIEW w AS SELECT unknown_function(1)
CREATE VIEW w AS SELECT * FROM nowhere
DROP TABLE nowhere
DROP VIEW orders
DROP TABLE orders, users
DROP SCHEMA public
DROP USER eve
ALTER USER eve SUPERUSER
ALTER DATABASE shop SET x = 1
SELECT * FROM orders WHERE id = ?
SELECT * FROM orders WHERE id = :id
SELECT * FROM orders WHERE id = %s
SELECT * FROM orders WHERE id = @x
SELECT * FROM orders WHERE id = $1
SELECT * FROM orders AS a, users AS a
SELECT * FROM orders, orders
SELECT 'unfinished
SELECT "unfinished
SELECT (1
SELECT 1)
SELECT
DELETE
/* nothing */
-- nothing
;
;;
SELECT 1 INTO x
SELECT * INTO t FROM orders
WITH a AS (WITH d AS (DELETE FROM orders RETURNING id) SELECT * FROM d) SELECT * FROM a
INSERT INTO archive WITH d AS (DELETE FROM orders RETURNING id, status) SELECT * FROM d
SELECT * FROM (DELETE FROM orders RETURNING *) x
SELECT /*! unknown_function(1) */ 1
SELECT /*!50000 1 */ 2
/*!50000 DROP TABLE users */
/*!99999 DROP TABLE users */ SELECT 1
SELECT 1 /*M!100000 + (SELECT 1) */
SELECT /*+ MAX_EXECUTION_TIME(0) */ 1
SELECT 1; /*! DROP TABLE users */
"""

POSTGRESQL = """
ANALYZE orders
ANALYZE
REINDEX TABLE orders
CREATE TABLE t AS TABLE pg_authid
CREATE TABLE IF NOT EXISTS public.t AS TABLE pg_authid
CREATE TABLE t AS TABLE 'orders'
CREATE TABLE t AS "TABLE" orders
CREATE TABLE t AS TABLE pg_catalog.pg_authid
CREATE TABLE t AS TABLE orders, pg_authid
SELECT pg_read_file('/etc/passwd')
SELECT pg_read_binary_file('/etc/passwd')
SELECT pg_ls_dir('/')
SELECT pg_stat_file('x')
SELECT lo_import('/etc/passwd')
SELECT lo_export(1, '/tmp/x')
SELECT lo_get(1)
SELECT lo_from_bytea(0, 'x')
SELECT dblink('host=evil', 'SELECT 1')
SELECT dblink_connect('host=evil')
SELECT * FROM dblink('host=evil', 'SELECT 1') AS t(x int)
SELECT pg_sleep(100)
SELECT pg_sleep_for('1 day')
SELECT pg_catalog.pg_sleep(100)
SELECT PG_SLEEP(1), pG_sLeEp(1)
SELECT U&"pg\\005fsleep"(1)
SELECT U&'\\0061' UESCAPE '!'
SELECT set_config('search_path', 'evil', false)
SELECT current_setting('is_superuser')
SELECT nextval('orders_id_seq')
SELECT setval('orders_id_seq', 1)
SELECT currval('orders_id_seq')
SELECT lastval()
SELECT pg_advisory_lock(1)
SELECT pg_advisory_xact_lock(1)
SELECT pg_terminate_backend(1)
SELECT pg_cancel_backend(1)
SELECT pg_reload_conf()
SELECT pg_switch_wal()
SELECT pg_notify('a', 'b')
SELECT txid_current()
SELECT pg_export_snapshot()
SELECT query_to_xml('DELETE FROM users', true, true, '')
SELECT table_to_xml('users', true, true, '')
SELECT database_to_xml(true, true, '')
SELECT xpath('/a', '<a/>')
SELECT pg_get_viewdef('v')
SELECT has_table_privilege('users', 'select')
SELECT to_regclass('users')
SELECT 'users'::regclass
SELECT 'pg_sleep'::regproc
SELECT 'x'::regrole, 1::oid
SELECT CAST('users' AS regclass)
SELECT ts_stat('SELECT 1')
SELECT * FROM crosstab('SELECT 1')
SELECT * FROM evil.generate_series(1, 3)
SELECT evil.total(*) FILTER (WHERE id > 0) FROM orders AS evil
SELECT evil.sum(total) FILTER (WHERE id > 0) FROM (SELECT id, total, 1 AS sum FROM orders) AS evil
SELECT pg_catalog.pg_sleep(1)
SELECT U&'\\0007'
SELECT U&'\\d83d\\de00', U&'\\00g9', U&'\\+110000'
CREATE INDEX i ON orders (status evil_ops)
CREATE INDEX i ON orders (status public.text_pattern_ops)
SELECT status::evil.order_status FROM orders
SELECT evil.lower(status) OVER () FROM orders
SELECT pg_catalog.coalesce(status, 'x') FROM orders
SELECT * FROM "evil".unnest(ARRAY[1]) AS g
SELECT * FROM orders CROSS JOIN LATERAL evil.generate_series(1, 3) AS g
SELECT * FROM pg_user
SELECT * FROM "stock.items"
SELECT * FROM "stock.items".items
SELECT array_fill(0, ARRAY[1000000000])
SELECT * FROM pg_catalog.pg_authid
SELECT * FROM pg_shadow
SELECT * FROM pg_temp.orders
SELECT * FROM pg_stat_activity
SELECT o.pg_sleep FROM orders AS o
SELECT g.pg_sleep FROM generate_series(1, 1) AS g
SELECT generate_series.pg_sleep FROM generate_series(1, 1)
SELECT g.pg_read_file FROM unnest(ARRAY['/etc/passwd']) AS g
SELECT unnest.pg_read_file FROM unnest(ARRAY['/etc/passwd'])
SELECT g.pg_read_file FROM unnest(ARRAY['/etc/passwd']) WITH ORDINALITY AS g
SELECT g.pg_sleep FROM orders, LATERAL generate_series(1, id) AS g
SELECT g.lo_import FROM jsonb_object_keys('{"a": 1}') AS g
SELECT g.pg_read_file FROM regexp_split_to_table('/etc/passwd', ' ') AS g
SELECT g.dblink FROM (VALUES ('host=evil')) AS g
SELECT g.pg_sleep FROM (SELECT 1) AS g
SELECT g.pg_sleep FROM (SELECT * FROM generate_series(1, 1)) AS g
WITH g AS (SELECT 1) SELECT g.pg_sleep FROM g
WITH RECURSIVE g AS (SELECT 1 UNION ALL SELECT g.pg_sleep FROM g) SELECT 1 FROM g
UPDATE orders SET total = g.pg_sleep FROM generate_series(1, 1) AS g
INSERT INTO orders (total) SELECT g.pg_sleep FROM generate_series(1, 1) AS g
SELECT (SELECT g.pg_sleep) FROM generate_series(1, 1) AS g
SELECT id FROM orders ORDER BY (SELECT g.pg_sleep FROM generate_series(1, 1) AS g)
SELECT (o).lower FROM orders AS o
SELECT (o).* FROM orders AS o
SELECT o.row_to_json FROM orders AS o
SELECT xmin, tableoid FROM orders
SELECT 1 OPERATOR(pg_catalog.+) 1
SELECT 1 OPERATOR(evil.+) 1
SELECT status @@@ 'x' FROM orders
SELECT repeat('x', 1000000000)
SELECT repeat('x', id) FROM orders
SELECT lpad('x', 1000000000)
SELECT current_user
SELECT session_user
SELECT user
SELECT current_catalog
SELECT current_schema
SELECT version()
SELECT inet_server_addr()
SELECT * FROM ROWS FROM (pg_ls_dir('/'))
SELECT * FROM generate_series(1, pg_sleep(1)::text::int) AS g(x)
SELECT * FROM orders TABLESAMPLE SYSTEM (10)
COPY orders TO '/tmp/x'
COPY orders FROM PROGRAM 'id'
COPY (SELECT 1) TO STDOUT
DO $$ BEGIN DELETE FROM users; END $$
DO LANGUAGE plpgsql 'BEGIN END'
LISTEN x
NOTIFY x
LOAD 'x'
DISCARD ALL
RESET ALL
CHECKPOINT
CLUSTER orders
REINDEX TABLE orders
REFRESH MATERIALIZED VIEW v
PREPARE TRANSACTION 'x'
COMMIT PREPARED 'x'
ROLLBACK PREPARED 'goex'
SET ROLE postgres
SET SESSION AUTHORIZATION postgres
SET search_path = evil
SET LOCAL session_replication_role = replica
ALTER SYSTEM SET x = 1
ALTER TABLE orders OWNER TO eve
ALTER TABLE orders DISABLE TRIGGER ALL
ALTER TABLE orders ENABLE ROW LEVEL SECURITY
ALTER TABLE orders SET SCHEMA other
ALTER TABLE orders SET TABLESPACE x
ALTER TABLE orders INHERIT users
ALTER TABLE orders ATTACH PARTITION users FOR VALUES IN (1)
ALTER TABLE orders REPLICA IDENTITY FULL
ALTER TABLE orders SET (fillfactor = 10)
ALTER ROLE goex SUPERUSER
ALTER SEQUENCE s RESTART
ALTER FUNCTION f() OWNER TO eve
CREATE EXTENSION dblink
CREATE SERVER s FOREIGN DATA WRAPPER w
CREATE FOREIGN TABLE t (x int) SERVER s
CREATE RULE r AS ON INSERT TO orders DO ALSO DELETE FROM users
CREATE POLICY p ON orders
CREATE OPERATOR + (leftarg = int)
CREATE CAST (int AS text) WITH FUNCTION f(int)
CREATE AGGREGATE a (int) (sfunc = f)
CREATE DOMAIN d AS int CHECK (f(value))
CREATE TYPE t AS (x int)
CREATE SEQUENCE s
CREATE SCHEMA evil
CREATE ROLE eve SUPERUSER
CREATE TABLESPACE t LOCATION '/tmp'
CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION f()
CREATE PUBLICATION p FOR ALL TABLES
CREATE SUBSCRIPTION s CONNECTION 'host=evil' PUBLICATION p
CREATE UNLOGGED TABLE t (x int)
CREATE TABLE pg_temp.t (x int)
CREATE TABLE pg_catalog.t (x int)
CREATE TABLE t (x int DEFAULT nextval('s'))
CREATE TABLE t (x int) INHERITS (orders)
CREATE TABLE t (LIKE orders)
CREATE TABLE t PARTITION OF orders DEFAULT
CREATE TABLE t (x int) TABLESPACE x
CREATE TABLE t (x int) WITH (autovacuum_enabled = false)
CREATE TABLE t (x regclass)
CREATE VIEW w WITH (security_barrier) AS SELECT 1
CREATE RECURSIVE VIEW w (n) AS SELECT 1
CREATE INDEX CONCURRENTLY i ON orders (id)
CREATE INDEX i ON orders USING evil (id)
CREATE INDEX i ON orders (id) TABLESPACE x
DROP FUNCTION f
DROP OWNED BY goex
DROP EXTENSION x
DROP TRIGGER t ON orders
REASSIGN OWNED BY goex TO eve
COMMENT ON TABLE pg_class IS 'x'
COMMENT ON TABLE nowhere IS 'x'
COMMENT ON VIEW orders IS 'x'
COMMENT ON COLUMN orders.nothing IS 'x'
COMMENT ON COLUMN total IS 'x'
COMMENT ON COLUMN other.public.orders.total IS 'x'
COMMENT ON CONSTRAINT orders_user ON orders IS 'x'
COMMENT ON DATABASE shop IS 'x'
COMMENT ON FUNCTION lower(text) IS 'x'
COMMENT ON TABLE orders IS 'x' || 'y'
ALTER TABLE orders ADD COLUMN low int CHECK (high > low) NOT VALID
ALTER TABLE orders ADD COLUMN low int CHECK (low > (SELECT max(id) FROM users)), ADD COLUMN high int
SECURITY LABEL ON TABLE orders IS 'x'
DECLARE c CURSOR FOR SELECT 1
FETCH ALL FROM c
MOVE c
CLOSE c
IMPORT FOREIGN SCHEMA x FROM SERVER s INTO public
TRUNCATE orders, users
TRUNCATE information_schema.x
INSERT INTO orders DEFAULT VALUES RETURNING pg_sleep(1)
INSERT INTO orders (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET id = pg_sleep(1)
INSERT INTO orders (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET nothing = 1
UPDATE orders SET status = 'x' WHERE CURRENT OF c
DELETE FROM orders WHERE CURRENT OF c
UPDATE orders SET (status, total) = (SELECT pg_sleep(1), 2)
UPDATE orders SET users.name = 'x'
SELECT lower(VARIADIC ARRAY[pg_sleep(1)])
SELECT $tag$ ; DROP TABLE users; $tag$; DROP SCHEMA public
SELECT E'\\'; DROP SCHEMA public; --'; DROP SCHEMA public
SELECT format('%s', pg_sleep(1))
SELECT format('%1000000000s', 'x')
SELECT format('%*s', 1000000000, 'x')
SELECT format(name) FROM users
SELECT 1 UNION SELECT pg_sleep(1)
SELECT * FROM orders ORDER BY pg_sleep(1)
SELECT * FROM orders LIMIT (SELECT pg_sleep(1))
SELECT count(*) FILTER (WHERE pg_sleep(1) IS NULL) FROM orders
SELECT sum(id) OVER (ORDER BY pg_sleep(1)) FROM orders
SELECT CASE WHEN true THEN pg_sleep(1) END
SELECT * FROM orders JOIN users ON pg_sleep(1) IS NULL
SELECT * FROM orders, LATERAL pg_ls_dir('/') AS x
SELECT * FROM orders CROSS JOIN LATERAL (SELECT pg_sleep(1)) x
SELECT DISTINCT ON (pg_sleep(1)) id FROM orders
SELECT * FROM orders GROUP BY pg_sleep(1)
SELECT * FROM orders WINDOW w AS (ORDER BY pg_sleep(1))
VALUES (pg_sleep(1))
TABLE pg_authid
SELECT ARRAY(SELECT pg_sleep(1))
SELECT ARRAY[pg_sleep(1)]
SELECT ROW(pg_sleep(1))
SELECT status COLLATE "evil" FROM orders WHERE pg_sleep(1) IS NULL
SELECT 'x' AT TIME ZONE pg_sleep(1)::text
SELECT EXTRACT(YEAR FROM pg_sleep(1))
SELECT INTERVAL '1 day' * pg_sleep(1)
SELECT 'x'::xml
SELECT CAST('x' AS users)
SELECT CAST('x' AS evil.thing)
EXPLAIN (ANALYZE) UPDATE orders SET total = 1
EXPLAIN (COSTS OFF, ANALYZE ON) DELETE FROM orders
EXPLAIN (ANALYZE OFF) DELETE FROM orders
EXPLAIN ANALYZE VERBOSE WITH d AS (DELETE FROM orders RETURNING id) SELECT * FROM d
EXPLAIN ANALYZE MERGE INTO orders USING users ON orders.user_id = users.id WHEN MATCHED THEN DELETE
EXPLAIN (ANALYZE) SELECT pg_sleep(1)
SELECT * FROM jsonb_to_recordset('[]')
SELECT * FROM jsonb_to_record('{}') AS x(a regclass)
SELECT ARRAY(SELECT pg_sleep(1))
SELECT ARRAY(1, 2)
SELECT ctid FROM v
SELECT xmin FROM orders
UPDATE orders SET ctid = '(0,1)'
TABLE pg_authid
EXPLAIN (SERIALIZE) SELECT 1
SET @x = 1
INSERT INTO orders (status) VALUES ('x'); SELECT currval('orders_' || 'id_seq')
INSERT INTO orders (status) VALUES ('x'); SELECT pg_get_serial_sequence('orders', 'id')
INSERT INTO orders (status) VALUES ('x'); SELECT currval(pg_get_serial_sequence(status, 'id')) FROM orders
INSERT INTO orders (status) VALUES ('x'); SELECT setval('orders_id_seq', 5)
UPDATE orders SET total = 1; SELECT lastval()
WITH n AS (SELECT id FROM orders FOR UPDATE SKIP LOCKED) SELECT * FROM n
UPDATE orders SET total = 1 WHERE user_id IN (SELECT id FROM users FOR UPDATE)
UPDATE orders SET total = 1 WHERE id IN (SELECT o.id FROM orders o JOIN users u ON u.id = o.user_id FOR UPDATE)
UPDATE orders SET total = 1 WHERE id IN (SELECT x.id FROM (SELECT id FROM orders) x FOR UPDATE)
INSERT INTO archive (id) SELECT id FROM users FOR UPDATE
WITH n AS (SELECT id FROM stock.items FOR UPDATE) UPDATE orders SET total = 1 WHERE id IN (SELECT id FROM n)
SELECT * FROM orders FOR UPDATE SKIP LOCKED
SELECT * FROM (WITH d AS (DELETE FROM orders RETURNING id) SELECT * FROM d) x
WITH a AS (WITH d AS (DELETE FROM orders RETURNING id) SELECT * FROM d) SELECT * FROM a
SELECT * FROM information_schema.role_table_grants
INSERT INTO orders (id) VALUES (nextval('archive_id_seq'::regclass))
SELECT nextval('orders_id_seq')
UPDATE orders SET id = nextval('orders_id_seq')
DELETE FROM information_schema.tables
MERGE INTO orders USING users ON orders.user_id = users.id WHEN MATCHED THEN UPDATE SET nowhere = 1
SHOW TABLES
DESCRIBE orders
"""

MARIADB = """
WITH users AS (SELECT 1 AS id) SELECT * FROM shop.users
WITH RECURSIVE a AS (SELECT id FROM shop.users), users AS (SELECT 9 AS id) UPDATE orders SET id = (SELECT 1 FROM a)
ANALYZE orders
SELECT LOAD_FILE('/etc/passwd')
SELECT `LOAD_FILE`('/etc/passwd')
SELECT load_file(0x2f6574632f706173737764)
SELECT SLEEP(10)
SELECT BENCHMARK(1000000000, MD5('x'))
SELECT GET_LOCK('a', 10)
SELECT RELEASE_LOCK('a')
SELECT IS_FREE_LOCK('a')
SELECT MASTER_POS_WAIT('a', 1)
SELECT USER()
SELECT CURRENT_USER()
SELECT CURRENT_USER
SELECT SCHEMA()
SELECT VERSION()
SELECT @@version
SELECT @@global.secure_file_priv
SET @goex_read = 'x'
SET @GoEx = 1
SET @x = @y
SET @x = @x + 1
SELECT @x
SET @x = 1, GLOBAL max_connections = 1
SET @x = 1, @@sql_mode = ''
SET @x = 1, sql_mode = ''
SET @x = SLEEP(1)
SET @x = LAST_INSERT_ID()
SET @x = 1 FROM users
SET @x = 5 y
SET @x = *
SET @x = 1; CREATE TABLE t (a int DEFAULT (@x))
SET @x = 1; CREATE VIEW w AS SELECT @x AS a
SET @x = 'SELECT 1'; PREPARE p FROM @x
SET @x = 'SELECT 1'; EXECUTE IMMEDIATE @x
SELECT id := 1 FROM orders
SELECT 1 INTO @goex_read
SELECT * FROM JSON_TABLE(LOAD_FILE('/etc/passwd'), '$' COLUMNS (a TEXT PATH '$')) t
SELECT * FROM JSON_TABLE((SELECT extra FROM mysql.user), '$' COLUMNS (a TEXT PATH '$')) t
SELECT t.b FROM JSON_TABLE('[]', '$' COLUMNS (a TEXT PATH '$')) t
SELECT nothing FROM orders, JSON_TABLE('[]', '$' COLUMNS (a TEXT PATH '$')) t
UPDATE JSON_TABLE('[]', '$' COLUMNS (a TEXT PATH '$')) t SET a = 1
SHOW TABLES LIKE users
SELECT 1 INTO x
SELECT id FROM users WHERE id IN (SELECT 1 INTO @x)
ANALYZE UPDATE orders SET total = 1
ANALYZE TABLE orders
ANALYZE FORMAT=JSON DELETE FROM orders
EXPLAIN FOR CONNECTION 5
DELETE o, b FROM orders o JOIN orders b ON b.id = o.user_id
UPDATE orders o JOIN orders b ON b.id = o.user_id SET o.total = 1, b.total = 2
DELETE orders, nowhere FROM orders JOIN users ON users.id = orders.user_id
DELETE users, t FROM users JOIN (SELECT 1 AS a) t
UPDATE orders SET total = 1 WHERE id = (SELECT id FROM users LIMIT 1 FOR UPDATE)
SELECT CONNECTION_ID()
SELECT LAST_INSERT_ID(5)
SELECT LAST_INSERT_ID()
UPDATE orders SET total = 1; SELECT LAST_INSERT_ID()
INSERT INTO orders (status) VALUES ('x'); SELECT LAST_INSERT_ID(5)
INSERT INTO orders (status) VALUES ('x'); CREATE VIEW last_one AS SELECT LAST_INSERT_ID() AS id
BEGIN; SELECT 1; END
START TRANSACTION READ ONLY; SELECT 1; COMMIT
SELECT ROW_COUNT()
SELECT FOUND_ROWS()
SELECT UUID_SHORT()
SELECT NEXTVAL(s)
SELECT NEXT VALUE FOR s
SELECT SETVAL(s, 1)
SELECT LASTVAL(s)
SELECT UpdateXML('<a/>', '/a', 'b')
SELECT EXTRACTVALUE('<a/>', CONCAT('~', (SELECT 1)))
SELECT AES_DECRYPT('a', 'b')
SELECT ENCRYPT('x')
SELECT sys_exec('id')
SELECT * FROM orders INTO OUTFILE '/tmp/x'
SELECT * FROM orders INTO DUMPFILE '/tmp/x'
SELECT * INTO OUTFILE '/tmp/x' FROM orders
SELECT * FROM (SELECT * FROM orders LOCK IN SHARE MODE) x
SELECT * FROM orders PROCEDURE ANALYSE()
SELECT * FROM mysql.user
SELECT mysql.user.host FROM orders
SELECT * FROM performance_schema.threads
SELECT * FROM orders FOR SYSTEM_TIME ALL
SELECT * FROM orders USE INDEX (x)
SELECT SQL_CALC_FOUND_ROWS * FROM orders
SELECT STRAIGHT_JOIN * FROM orders
SELECT _gbk 0xbf27
SELECT _latin1'x'
SELECT id 'a' 'b' FROM orders
SELECT DATE '2024-01-01' 'a'
SELECT REPEAT('x', 1000000000)
SELECT SPACE(1000000000)
SELECT REPEAT('x', id) FROM orders
SELECT CONVERT(name USING evil) FROM users
LOAD DATA INFILE '/etc/passwd' INTO TABLE orders
LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE orders
LOAD XML INFILE 'x' INTO TABLE orders
HANDLER orders OPEN
DO SLEEP(5)
KILL 1
FLUSH TABLES
FLUSH TABLES WITH READ LOCK
RESET MASTER
PURGE BINARY LOGS TO 'x'
SHUTDOWN
USE mysql
SET GLOBAL general_log = 1
SET @@sql_mode = ''
SET NAMES gbk
SET PASSWORD = 'x'
SET STATEMENT max_statement_time=1 FOR SELECT 1
SHOW GRANTS
SHOW CREATE TABLE orders
SHOW INDEX FROM mysql.user
SHOW INDEX FROM orders FROM mysql
XA START 'x'
XA PREPARE 'x'
XA COMMIT 'goex'
XA ROLLBACK 'goex'
XA RECOVER
LOCK TABLES orders WRITE
UNLOCK TABLES
RENAME TABLE orders TO mysql.x
OPTIMIZE TABLE orders
REPAIR TABLE orders
CHECK TABLE orders
CHECKSUM TABLE orders
ANALYZE TABLE orders
INSTALL PLUGIN x SONAME 'x.so'
INSTALL SONAME 'x'
CREATE FUNCTION f RETURNS STRING SONAME 'udf.so'
CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM users
CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'evil')
CREATE DEFINER=root@localhost VIEW w AS SELECT 1
CREATE SQL SECURITY DEFINER VIEW w AS SELECT 1
CREATE TABLE t (x int) ENGINE=FEDERATED CONNECTION='mysql://evil/x'
CREATE TABLE t (x int) ENGINE='FEDERATED'
CREATE TABLE t (x int) ENGINE=`CONNECT`
CREATE TABLE t (x int) ENGINE=CONNECT TABLE_TYPE=CSV FILE_NAME='/etc/passwd'
CREATE TABLE t (x int) ENGINE=CSV
CREATE TABLE t (x int) ENGINE=MERGE UNION=(orders)
CREATE TABLE t (x int) DATA DIRECTORY='/tmp'
CREATE TABLE t (x int) CONNECTION='x'
CREATE TABLE t LIKE v
CREATE TABLE t LIKE nowhere
CREATE TABLE t LIKE mysql.user
RENAME TABLE orders TO a, users TO b
RENAME TABLE orders TO mysql.x
CREATE TABLE mysql.t (x int)
CREATE OR REPLACE TABLE orders (x int)
CREATE SEQUENCE s
CREATE TABLE t (x int DEFAULT (SLEEP(1)))
CREATE TABLE t (x int AS (SLEEP(1)))
ALTER TABLE orders ENGINE=FEDERATED
ALTER TABLE orders RENAME TO mysql.x
ALTER TABLE orders DISCARD TABLESPACE
ALTER TABLE orders DATA DIRECTORY='/tmp'
ALTER TABLE orders EXCHANGE PARTITION p WITH TABLE users
ALTER TABLE orders DISABLE KEYS
ALTER TABLE orders ADD COLUMN x int DEFAULT (SLEEP(1))
INSERT INTO orders SELECT SLEEP(1), 2, 3, 4, 5
INSERT DELAYED INTO orders (id) VALUES (1)
INSERT INTO orders (id) VALUES (1) ON DUPLICATE KEY UPDATE status = SLEEP(1)
INSERT INTO mysql.user (user) VALUES ('eve')
REPLACE INTO mysql.user (user) VALUES ('eve')
UPDATE orders o JOIN users u ON o.user_id = u.id SET id = 1
DELETE mysql.user FROM mysql.user
DELETE x FROM orders o JOIN users u ON o.user_id = u.id
UPDATE LOW_PRIORITY mysql.user SET host = 'x'
UPDATE orders SET status = 'x' ORDER BY SLEEP(1) LIMIT 1
DELETE FROM orders ORDER BY SLEEP(1) LIMIT 1
DELETE HISTORY FROM orders
SELECT IF(1, SLEEP(1), 2)
SELECT 1 UNION SELECT SLEEP(1)
SELECT GROUP_CONCAT(SLEEP(1))
SELECT GROUP_CONCAT(id ORDER BY SLEEP(1)) FROM orders
SELECT EXTRACT(YEAR FROM SLEEP(1))
SELECT CAST(SLEEP(1) AS CHAR)
SELECT DATE_ADD(NOW(), INTERVAL SLEEP(1) DAY)
SELECT MATCH(status) AGAINST (SLEEP(1)) FROM orders
SELECT x.a FROM JSON_TABLE('[]', '$' COLUMNS (a INT PATH '$')) AS x WHERE SLEEP(1)
SELECT 1 --comment
BEGIN NOT ATOMIC DELETE FROM users; END
EXECUTE IMMEDIATE 'DROP TABLE users'
PREPARE s FROM 'DROP TABLE users'
SIGNAL SQLSTATE '45000'
BACKUP STAGE START
BINLOG 'x'
CHANGE MASTER TO MASTER_HOST='evil'
TRUNCATE mysql.user
SHOW PROCESSLIST
SHOW COLUMNS FROM mysql.user
SELECT * FROM information_schema.processlist
SELECT * FROM information_schema.tables
SELECT table_rows FROM information_schema.tables
SELECT * FROM orders FOR UPDATE SKIP LOCKED
EXPLAIN ANALYZE SELECT * FROM orders
MERGE INTO orders USING users ON orders.user_id = users.id WHEN MATCHED THEN DELETE
WITH d AS (DELETE FROM orders RETURNING id) SELECT * FROM d
WITH d AS (INSERT INTO users (name) VALUES ('x') RETURNING id) SELECT * FROM d
WITH d AS (UPDATE users SET name = 'x' RETURNING id) DELETE FROM orders WHERE id IN (SELECT id FROM d)
"""

SQLITE = """
WITH users AS (SELECT 1 AS id) SELECT * FROM main.users
WITH a AS (SELECT id FROM main.users), users AS (SELECT 99 AS id) DELETE FROM orders WHERE id IN (SELECT id FROM a)
WITH a AS (SELECT id FROM (SELECT id FROM main.users) u), users AS (SELECT 99 AS id) SELECT id FROM a
SELECT (WITH a AS (SELECT id FROM main.users), users AS (SELECT 99 AS id) SELECT id FROM a)
WITH users AS (SELECT id FROM main.users) SELECT id FROM users
ATTACH '/etc/passwd' AS x
ATTACH DATABASE 'x' AS y
DETACH x
PRAGMA writable_schema = 1
PRAGMA journal_mode = OFF
PRAGMA optimize
PRAGMA foreign_keys = OFF
VACUUM INTO '/tmp/x'
SELECT load_extension('x')
SELECT writefile('/tmp/x', 'y')
SELECT readfile('/etc/passwd')
SELECT edit('x')
SELECT fts3_tokenizer('x')
SELECT zeroblob(1000000000)
SELECT randomblob(1000000000)
SELECT randomblob(id) FROM orders
SELECT @x
SET @x = 1
EXPLAIN QUERY PLAN VACUUM
SELECT printf('%.1000000000d', 1)
SELECT format('%1000000000d', 1)
SELECT printf('%*d', 1000000000, 1)
SELECT printf(status, 1) FROM orders
SELECT sqlite_compileoption_get(1)
SELECT sqlite_version()
SELECT last_insert_rowid()
UPDATE orders SET total = last_insert_rowid()
INSERT INTO orders (status) VALUES (last_insert_rowid()); SELECT 1
INSERT INTO orders (status) VALUES ('x'); CREATE TABLE last_one (id int DEFAULT (last_insert_rowid()))
INSERT INTO orders (status) VALUES ('x'); SELECT last_insert_rowid(1)
SELECT changes()
SELECT total_changes()
SELECT * FROM temp.orders
SELECT * FROM sqlite_temp_master
SELECT * FROM pragma_database_list
SELECT * FROM pragma_database_list()
SELECT * FROM pragma_writable_schema(1)
SELECT * FROM pragma_journal_mode('off')
SELECT pragma_table_info('orders') FROM users
SELECT * FROM pragma_table_info(readfile('/etc/passwd'))
PRAGMA table_info
PRAGMA writable_schema(1)
PRAGMA journal_mode(off)
PRAGMA temp.table_info(orders)
PRAGMA table_info(orders) x
PRAGMA user_version = -5
PRAGMA schema_version = 5
ANALYZE main.orders
ANALYZE sqlite_schema
REINDEX BINARY
PRAGMA user_version(5)
PRAGMA integrity_check = 5
SELECT pragma_integrity_check()
PRAGMA foreign_keys = 0
SELECT * FROM dbstat
SELECT * FROM generate_series(1, 10)
SELECT * FROM orders INDEXED BY x
INSERT INTO sqlite_master VALUES (1)
DELETE FROM sqlite_sequence
UPDATE sqlite_sequence SET seq = 1
CREATE VIRTUAL TABLE t USING fts5(x)
CREATE TABLE sqlite_x (a)
CREATE TABLE temp.t (x)
CREATE TEMP VIEW w AS SELECT 1
CREATE TRIGGER t AFTER INSERT ON orders BEGIN DELETE FROM users; END
DROP TRIGGER t
ALTER TABLE orders RENAME TO sqlite_x
ALTER TABLE orders RENAME TO temp.x
ALTER TABLE sqlite_master RENAME TO x
BEGIN IMMEDIATE
END
END TRANSACTION
INSERT OR NOTHING INTO orders (id) VALUES (1)
UPDATE OR ROLLBACK nowhere SET id = 1
UPDATE orders SET rowid = 5
SELECT RAISE(ABORT, 'x')
SELECT "no_such_column" FROM orders
SELECT `no_such_column` FROM orders
SELECT [no_such_column] FROM orders
SELECT status FROM orders WHERE "admin" = 'admin'
SELECT * FROM orders WHERE status = load_extension('x')
SELECT * FROM json_each(readfile('/etc/passwd'))
SELECT group_concat(readfile('x')) FROM orders
UPDATE orders SET status = readfile('/etc/passwd')
INSERT INTO orders (status) SELECT readfile('x')
CREATE TABLE t AS SELECT readfile('x') AS y
CREATE INDEX i ON orders (readfile(status))
CREATE TABLE t (x DEFAULT (load_extension('x')))
CREATE TABLE t (x GENERATED ALWAYS AS (readfile('x')))
SELECT unistr_x('x')
SELECT x'zz'
DELETE FROM sqlite_master
UPDATE OR REPLACE nowhere SET id = 1
UPDATE OR IGNORE nowhere SET id = 1
UPDATE OR NOTHING orders SET id = 1
UPDATE OR orders SET id = 1
INSERT INTO orders (docid) VALUES (5)
SHOW TABLES
DESCRIBE orders
SELECT * FROM orders FOR UPDATE
SELECT * FROM orders FOR SHARE
SELECT * FROM information_schema.tables
MERGE INTO orders USING users ON orders.user_id = users.id WHEN MATCHED THEN DELETE
WITH d AS (DELETE FROM orders RETURNING id) SELECT * FROM d
WITH d AS (INSERT INTO users (name) VALUES ('x') RETURNING id) SELECT * FROM d
WITH d AS (UPDATE users SET name = 'x' RETURNING id) DELETE FROM orders WHERE id IN (SELECT id FROM d)
"""
