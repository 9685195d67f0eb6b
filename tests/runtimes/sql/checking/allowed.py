# ruff: noqa: E501 (one statement is one line)
"""SQL that people and models write, by dialect. All of it has to pass, and to run on the server."""

from __future__ import annotations

EVERYWHERE = """
SELECT 1
SELECT * FROM orders
SELECT o.* FROM orders o
SELECT id, status FROM orders WHERE total > 10 AND status <> 'x' ORDER BY placed DESC, id LIMIT 5 OFFSET 2
SELECT DISTINCT status FROM orders
SELECT count(*), sum(total), avg(total), min(placed), max(placed) FROM orders
SELECT COUNT(DISTINCT status) FROM orders
SELECT status, count(*) AS n FROM orders GROUP BY status HAVING count(*) > 1 ORDER BY n DESC
SELECT u.name, o.total FROM users u JOIN orders o ON o.user_id = u.id
SELECT u.name, o.total FROM users AS u LEFT OUTER JOIN orders AS o ON o.user_id = u.id AND o.total > 3
SELECT u.name FROM users u INNER JOIN orders o ON o.user_id = u.id INNER JOIN archive a ON a.id = o.id
SELECT u.name FROM users u CROSS JOIN archive a
SELECT u.name FROM users u, orders o WHERE o.user_id = u.id
SELECT id FROM users JOIN archive USING (id)
SELECT name FROM users WHERE id IN (SELECT user_id FROM orders WHERE total > 5)
SELECT name FROM users WHERE id NOT IN (1, 2, 3)
SELECT name FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id)
SELECT name FROM users u WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id)
SELECT name, (SELECT count(*) FROM orders o WHERE o.user_id = u.id) AS n FROM users u
SELECT * FROM (SELECT status, count(*) AS n FROM orders GROUP BY status) AS s WHERE s.n > 1
SELECT CASE WHEN total > 10 THEN 'big' WHEN total IS NULL THEN 'none' ELSE 'small' END AS size FROM orders
SELECT CASE status WHEN 'new' THEN 1 ELSE 0 END FROM orders
SELECT coalesce(name, email, 'nobody'), upper(name), lower(email), length(name), trim(name) FROM users
SELECT nullif(name, ''), abs(-3), round(2.567, 2), replace(name, 'a', 'b'), substr(name, 1, 3) FROM users
SELECT name FROM users WHERE name LIKE 'A%' OR name LIKE '%b_' OR name NOT LIKE 'c%'
SELECT name FROM users WHERE name LIKE '50!%' ESCAPE '!'
SELECT id FROM orders WHERE total BETWEEN 1 AND 10 AND id NOT BETWEEN 5 AND 6
SELECT id FROM orders WHERE total IS NULL OR NOT (status = 'x') AND total IS NOT NULL
SELECT (1 + 2) * 3 - 4 / 5.0, 7 % 3, -id FROM orders
SELECT id FROM users UNION SELECT id FROM orders
SELECT id FROM users UNION ALL SELECT id FROM orders ORDER BY id LIMIT 3
SELECT id FROM users EXCEPT SELECT user_id FROM orders
SELECT id FROM users INTERSECT SELECT user_id FROM orders
WITH big AS (SELECT id, user_id FROM orders WHERE total > 10) SELECT u.name FROM users u JOIN big ON big.user_id = u.id
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT x, y FROM a, b
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n
SELECT id, row_number() OVER (PARTITION BY user_id ORDER BY total DESC) AS r FROM orders
SELECT id, sum(total) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM orders
SELECT id, lag(total, 1) OVER w, lead(total) OVER w, rank() OVER w FROM orders WINDOW w AS (ORDER BY id)
SELECT CURRENT_DATE, CURRENT_TIMESTAMP
SELECT CAST(id AS char(10)) FROM orders
SELECT 'it''s', 'a;b', 'a--b', '/* no comment */', 'ünï', '日本', ':x %s ?'
SELECT id FROM orders -- a comment at the end
SELECT /* a plain comment */ id FROM orders;
UPDATE orders SET status = 'paid' WHERE id = 1
UPDATE orders SET status = 'paid', total = total * 1.1 WHERE status = 'new' AND total > 5
UPDATE orders SET status = 'paid'
UPDATE orders SET total = NULL WHERE id IN (1, 2, 3)
UPDATE orders SET total = (SELECT max(id) FROM users) WHERE id = 1
UPDATE orders SET status = CASE WHEN total > 5 THEN 'paid' ELSE status END WHERE user_id IN (SELECT id FROM users)
UPDATE users SET name = 'it''s; -- a "name" `here`' WHERE id = 1
DELETE FROM orders WHERE id = 1
DELETE FROM orders
DELETE FROM orders WHERE user_id IN (SELECT id FROM users WHERE name = 'x')
DELETE FROM orders WHERE NOT EXISTS (SELECT 1 FROM users WHERE users.id = orders.user_id)
INSERT INTO users (id, name) VALUES (100, 'Ann')
INSERT INTO users (id, name, email) VALUES (100, 'Ann', NULL), (101, 'Bob', 'b@example.org')
INSERT INTO archive (id, status) SELECT id, status FROM orders WHERE total > 5
INSERT INTO archive SELECT id, 'x' FROM orders
INSERT INTO users (id, name) SELECT 200 + id, upper(name) FROM users WHERE id < 50
CREATE TABLE notes (id int PRIMARY KEY, body text NOT NULL, made timestamp DEFAULT CURRENT_TIMESTAMP)
CREATE TABLE IF NOT EXISTS notes (id int, u int REFERENCES users (id) ON DELETE CASCADE, PRIMARY KEY (id))
CREATE TABLE notes (id int NOT NULL, n int CHECK (n > 0), UNIQUE (n), FOREIGN KEY (id) REFERENCES users (id))
CREATE TABLE notes (a int, b int, CONSTRAINT k PRIMARY KEY (a, b), CONSTRAINT c CHECK (a < b))
CREATE TABLE notes AS SELECT id, status FROM orders
CREATE VIEW paid AS SELECT id, total FROM orders WHERE status = 'paid'
CREATE INDEX by_total ON orders (total)
CREATE UNIQUE INDEX by_both ON orders (user_id, placed DESC)
DROP TABLE archive
DROP TABLE IF EXISTS archive
DROP VIEW v
ALTER TABLE orders ADD COLUMN note varchar(50)
ALTER TABLE orders ADD COLUMN note int NOT NULL DEFAULT 0
ALTER TABLE orders ADD note int
ALTER TABLE orders DROP COLUMN extra
ALTER TABLE orders RENAME TO purchases
ALTER TABLE orders RENAME COLUMN total TO amount
"""

POSTGRESQL = """
CREATE TABLE t AS TABLE orders
CREATE TABLE IF NOT EXISTS public.t AS TABLE public.orders
CREATE TABLE public.t AS TABLE "orders"
SELECT name FROM users WHERE name ILIKE 'a%' OR name ~ '^b' OR name !~* 'c' OR name SIMILAR TO 'd%'
SELECT total::int, '3'::numeric(10,2), placed::date, '2024-01-01'::timestamptz FROM orders
SELECT date '2024-01-01', interval '1 day', now() - interval '2 days 3 hours', placed + interval '1' month FROM orders
SELECT date_trunc('month', placed), extract(year FROM placed), to_char(placed, 'YYYY-MM'), age(placed) FROM orders
SELECT placed AT TIME ZONE 'UTC' FROM orders
SELECT placed + make_interval(days => 3, hours => id) FROM orders
SELECT extra->'a', extra->>'a', extra#>'{a,b}', extra#>>'{a,b}', extra @> '{"a":1}', extra ? 'a' FROM orders
SELECT extra->'a.b'->>0, extra || '{"x":1}', extra - 'a', jsonb_set(extra, '{a}', '1') FROM orders
SELECT jsonb_build_object('id', id, 'total', total), jsonb_agg(id) FROM orders GROUP BY id
SELECT string_agg(name, ', ' ORDER BY name), array_agg(DISTINCT name) FROM users
SELECT STRING_AGG(DISTINCT name, ', ' ORDER BY name), format('%s: %10s', name, email) FROM users GROUP BY name, email
SELECT x FROM orders, jsonb_array_elements(extra->'a.b') AS x WHERE id = 1
SELECT name FROM users WHERE name ILIKE ANY (ARRAY['a%', 'b%'])
SELECT count(*) FILTER (WHERE total > 5), percentile_cont(0.5) WITHIN GROUP (ORDER BY total) FROM orders
SELECT id FROM orders WHERE id = ANY(ARRAY[1, 2]) OR id <> ALL(ARRAY[3]) OR (id, user_id) IN ((1, 2))
SELECT * FROM generate_series(1, 3) AS g(x)
SELECT substring(name, 1, 2), upper(substring(name, 2)) || substring(name, '^.') FROM users WHERE substring(name, 1, 1) > 'a'
SELECT pg_catalog.lower(name), pg_catalog.count(*), pg_catalog.sum(id) OVER () FROM users GROUP BY 1, id
SELECT U&'d\\0061t\\+000061 it''s \\\\' || name FROM users
CREATE INDEX extra_paths ON orders USING gin (extra jsonb_path_ops)
CREATE INDEX small_names ON users (lower(name) text_pattern_ops DESC)
SELECT d::date FROM generate_series('2024-01-01'::timestamp, '2024-01-03'::timestamp, interval '1 day') AS d
SELECT x FROM unnest(ARRAY['a', 'b']) AS x
SELECT u.x, u.n FROM unnest(ARRAY['a', 'b']) WITH ORDINALITY AS u(x, n)
SELECT u.u, u.ordinality FROM unnest(ARRAY['a', 'b']) WITH ORDINALITY AS u
SELECT unnest.unnest, g.g FROM unnest(ARRAY['a', 'b']), generate_series(1, 2) AS g
SELECT e.value, e.ordinality FROM jsonb_array_elements('[1, 2]') WITH ORDINALITY AS e
SELECT k.k, e.value->>'x' FROM jsonb_object_keys('{"a": 1}') AS k, jsonb_array_elements('[{"x": 1}]') AS e
SELECT v.column1, s.count FROM (VALUES (1, 'a')) AS v, (SELECT count(*) FROM orders) AS s
WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT n.i + 1 FROM n WHERE n.i < 3) SELECT n.i FROM n
SELECT s.a, s.b FROM generate_series(1, 2) AS g, LATERAL (SELECT g.g AS a, 2 AS b) AS s
SELECT e.key, e.value FROM orders, jsonb_each(extra) AS e
SELECT u.name, t.total FROM users u CROSS JOIN LATERAL (SELECT total FROM orders o WHERE o.user_id = u.id LIMIT 1) t
SELECT v.a FROM (VALUES (1, 'x'), (2, 'y')) AS v(a, b)
SELECT DISTINCT ON (user_id) user_id, id FROM orders ORDER BY user_id, placed DESC NULLS LAST
SELECT row_to_json(o) FROM orders o
SELECT id FROM orders FETCH FIRST 2 ROWS ONLY
SELECT status, user_id, sum(total) FROM orders GROUP BY ROLLUP (status, user_id)
SELECT status, user_id, sum(total) FROM orders GROUP BY GROUPING SETS ((status), (user_id), ())
SELECT 'a' || name, name IS DISTINCT FROM email, greatest(1, 2), left(name, 2), split_part(name, ' ', 1) FROM users
SELECT substring(name FROM 1 FOR 2), position('a' IN name), trim(both 'x' FROM name), overlay(name PLACING 'x' FROM 1) FROM users
SELECT regexp_replace(name, 'a+', 'b', 'g'), md5(name), lpad(name, 10, '0'), repeat('x', 3) FROM users
SELECT E'a\\nb', $$dollar 'quoted'$$, 'back\\slash', E'quote\\'d'
SELECT status::text, 'new'::order_status FROM orders
SELECT CURRENT_TIMESTAMP(3), LOCALTIME(2), CURRENT_TIME(1), LOCALTIMESTAMP(0)
SELECT 2 ^ 3, 5 # 3, ~5, 1 << 2, 7 & 3, 1 | 2
SELECT "Label" FROM stock.items
SELECT s.id FROM stock.items AS s JOIN public.orders o ON o.id = s.id
SELECT ORDERS.ID FROM Orders
UPDATE orders SET total = DEFAULT WHERE id = 1
UPDATE orders SET (total, status) = (DEFAULT, 'new') WHERE id = 1
INSERT INTO users (id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = DEFAULT, email = excluded.name
INSERT INTO users (id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET (name, email) = (DEFAULT, 'y')
UPDATE orders o SET status = 'paid' FROM users u WHERE u.id = o.user_id AND u.name = 'Ann'
UPDATE orders SET status = 'paid' FROM users u JOIN archive a ON a.id = u.id WHERE u.id = orders.user_id RETURNING orders.id, u.name
UPDATE orders SET (status, total) = ('paid', 3) WHERE id = 1
UPDATE orders SET (total, placed) = (SELECT 3, born FROM users WHERE users.id = orders.user_id)
UPDATE orders SET extra = jsonb_set(extra, '{a}', '"b"') WHERE extra->>'a' = 'x' RETURNING *
UPDATE stock.items SET "Label" = 'x' WHERE id = 1
WITH old AS (SELECT id FROM orders WHERE total < 1) UPDATE orders SET status = 'old' FROM old WHERE old.id = orders.id
WITH old AS (SELECT id FROM orders WHERE total < 1) DELETE FROM orders WHERE id IN (SELECT id FROM old)
DELETE FROM orders o USING users u WHERE u.id = o.user_id AND u.name = 'x' RETURNING o.id
INSERT INTO users (id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = excluded.name, email = users.email
INSERT INTO users (id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE users.name <> 'y' RETURNING id
INSERT INTO users (id, name) VALUES (1, 'x') ON CONFLICT DO NOTHING
INSERT INTO users (id, name) VALUES (1, 'x') ON CONFLICT ON CONSTRAINT users_pkey DO NOTHING
INSERT INTO users (id, name, born) VALUES (900, 'x', DEFAULT) RETURNING id, name AS n
INSERT INTO users (id, name, born) VALUES (901, 'x', now() - interval '30 years')
WITH n AS (SELECT 902 AS id, 'x' AS name) INSERT INTO users (id, name) SELECT id, name FROM n
TRUNCATE orders
TRUNCATE TABLE orders RESTART IDENTITY CASCADE
CREATE TABLE notes (id serial PRIMARY KEY, tags text[], at timestamptz NOT NULL DEFAULT now(), n numeric(8,2), j jsonb)
CREATE TABLE notes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int, b int GENERATED ALWAYS AS (a * 2) STORED)
CREATE TABLE notes (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), s order_status)
CREATE TABLE stock.notes (id int)
CREATE INDEX by_name ON users (lower(name))
CREATE INDEX by_extra ON orders USING gin (extra)
CREATE INDEX part ON orders (id) WHERE total > 5
CREATE OR REPLACE VIEW v AS SELECT id FROM orders
DROP INDEX orders_status
DROP TABLE orders CASCADE
ALTER TABLE orders ALTER COLUMN total TYPE int USING total::int
ALTER TABLE orders ALTER COLUMN status SET NOT NULL
ALTER TABLE orders ALTER COLUMN total DROP NOT NULL, ALTER COLUMN total SET DEFAULT 0
ALTER TABLE orders ALTER COLUMN total DROP DEFAULT
ALTER TABLE orders ADD CONSTRAINT positive CHECK (total >= 0)
ALTER TABLE orders ADD CONSTRAINT uniq UNIQUE (user_id, placed)
ALTER TABLE orders ADD CONSTRAINT f FOREIGN KEY (user_id) REFERENCES users (id)
ALTER TABLE orders DROP CONSTRAINT orders_user
ALTER TABLE orders ADD COLUMN IF NOT EXISTS note text, DROP COLUMN IF EXISTS extra
ALTER TABLE orders ADD COLUMN note text, ADD CONSTRAINT said CHECK (note <> '')
ALTER TABLE orders ADD COLUMN low int, ADD COLUMN high int CHECK (high > low)
ALTER TABLE orders ADD CONSTRAINT positive CHECK (total >= 0) NOT VALID
ALTER TABLE orders ADD CONSTRAINT f FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE NOT VALID
COMMENT ON TABLE orders IS 'What was bought; it''s paid'
COMMENT ON COLUMN orders.total IS ''
COMMENT ON COLUMN public.orders."total" IS 'in cents'
SELECT '{[1,3),[5,9)}'::int4multirange, convert_from(convert_to('x', 'UTF8'), 'UTF8'), set_masklen('10.0.0.1'::inet, 8)
SELECT * FROM orders FOR UPDATE
SELECT * FROM orders FOR SHARE
SELECT * FROM ONLY orders
UPDATE ONLY orders SET total = 1
CREATE MATERIALIZED VIEW w AS SELECT id FROM orders
EXPLAIN SELECT * FROM orders WHERE id = 1
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'
MERGE INTO orders USING users ON orders.user_id = users.id WHEN MATCHED THEN DELETE
MERGE INTO orders o USING users u ON o.id = u.id WHEN MATCHED AND o.total > 5 THEN UPDATE SET status = 'paid' WHEN NOT MATCHED THEN DO NOTHING
EXPLAIN (COSTS OFF) UPDATE orders SET total = 1 WHERE id = 1
EXPLAIN DELETE FROM orders
EXPLAIN (COSTS OFF, FORMAT JSON) INSERT INTO users (id, name) VALUES (1, 'x') ON CONFLICT (id) DO NOTHING
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) SELECT id FROM orders WHERE total > 5
EXPLAIN VERBOSE WITH d AS (DELETE FROM orders RETURNING id) SELECT * FROM d
INSERT INTO archive (id, status) SELECT users.id, 'y' FROM users CROSS JOIN orders ON CONFLICT (id) DO NOTHING
INSERT INTO archive (id, status) SELECT x.id, x.s FROM jsonb_to_recordset('[{"id":30,"s":"x"},{"id":31}]') AS x(id int, s text)
SELECT x."A", o.id FROM orders o, json_to_record('{"A":1}') AS x("A" int)
SELECT ARRAY(SELECT id FROM orders ORDER BY id)
DELETE FROM orders a USING orders b WHERE a.ctid < b.ctid AND a.status = b.status
DELETE FROM orders WHERE ctid NOT IN (SELECT min(ctid) FROM orders GROUP BY status)
TABLE users
VALUES (1, 'a'), (2, 'b')
WITH t(a, b) AS (VALUES (1, 'paid'), (2, 'new')) UPDATE orders SET total = t.a FROM t WHERE t.a = orders.id
SELECT id FROM users WHERE NOT EXISTS (SELECT FROM orders WHERE orders.user_id = users.id)
SELECT id FROM orders WHERE extra @? '$.a'
INSERT INTO archive (id, status) SELECT u.id, 'y' FROM users u JOIN orders o ON o.user_id = u.id ON CONFLICT DO NOTHING
UPDATE orders SET total = 1 WHERE id = (SELECT id FROM orders WHERE total > 1 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id
WITH n AS (SELECT o.id FROM orders o FOR NO KEY UPDATE OF o SKIP LOCKED) DELETE FROM orders WHERE id IN (SELECT id FROM n)
WITH d AS (DELETE FROM orders RETURNING id) SELECT * FROM d
WITH d AS (UPDATE users SET name = 'x' RETURNING id) DELETE FROM orders WHERE id IN (SELECT id FROM d)
"""

MARIADB = """
SELECT IF(total > 5, 'a', 'b'), IFNULL(name, 'x'), CONCAT(name, ' ', email), CONCAT_WS('-', name, email) FROM users, orders
SELECT NOW(), NOW(6), CURDATE(), UTC_TIMESTAMP(), DATE_ADD(placed, INTERVAL 1 DAY), placed - INTERVAL 2 HOUR FROM orders
SELECT DATE_SUB(placed, INTERVAL '1:30' HOUR_MINUTE), DATEDIFF(NOW(), placed), TIMESTAMPDIFF(DAY, placed, NOW()) FROM orders
SELECT DATE_FORMAT(placed, '%Y-%m'), YEAR(placed), MONTH(placed), DATE(placed), EXTRACT(YEAR FROM placed) FROM orders
SELECT GROUP_CONCAT(DISTINCT name ORDER BY name SEPARATOR ', ') FROM users
SELECT JSON_EXTRACT(extra, '$.a'), JSON_UNQUOTE(JSON_EXTRACT(extra, '$.a')), JSON_OBJECT('id', id), JSON_VALUE(extra, '$.a') FROM orders
SELECT name FROM users WHERE name REGEXP '^a' OR name RLIKE 'b$' OR name NOT REGEXP 'c'
SELECT name <=> email, 7 DIV 2, 7 MOD 2, 1 XOR 0, 5 ^ 3, 5 & 3, 5 | 3, 1 << 2, !0 FROM users
SELECT name FROM users WHERE name = 'a' && email = 'b' || id = 3
SELECT CAST(total AS UNSIGNED), CAST(name AS CHAR(3)), BINARY name FROM orders, users
SELECT name COLLATE utf8mb4_bin FROM users
SELECT `name`, `order`.`id` FROM users, orders AS `order`
SELECT 'a\\'b', 'c\\\\d', "double \\"quoted\\"", 'tab\\there', '100\\%', 0x41, x'41', b'101'
SELECT 0x31, 0x31 + 0, x'31' + 0, 0b11 + 0, id < 0x10 FROM orders
SELECT POSITION('a' IN name), INTERVAL(id, 1, 2, 3) + 1, INTERVAL(5, 1, 2) FROM users
SELECT placed + INTERVAL (id + 1) DAY, placed + INTERVAL id DAY FROM orders
SELECT placed + INTERVAL 1.5 DAY, placed + INTERVAL '1.5' DAY, placed - INTERVAL .5 HOUR, placed - INTERVAL 2.5 MONTH FROM orders
SELECT DATE_ADD(placed, INTERVAL -1.5 DAY), DATE_ADD(placed, INTERVAL 1e1 DAY), placed + INTERVAL 1.30 MINUTE_SECOND FROM orders
SELECT placed + INTERVAL 99999999999999999999 DAY, DATE_SUB(placed, INTERVAL -1 DAY), placed + INTERVAL 01 DAY FROM orders
UPDATE orders SET placed = placed + INTERVAL 2.5 YEAR
SELECT 'a' 'b', N'a' 'b' 'c', CONCAT('it''s' "x", N'c' 'd', '\\\\' '%'), _utf8mb4'a' 'b' FROM users
(SELECT N'a' 'b', _utf8mb4'c' 'd')
SELECT id FROM users WHERE name = 'A' 'nn' OR name LIKE 'B' '%' OR name BETWEEN 'x' 'y' AND 'z' 'z' OR name IN ('', 'B' 'ob')
SELECT CASE WHEN name > 'A' 'a' THEN 'x' 'y' ELSE 'z' /* and */ 'w' END, x'41' 'b', id 'i' FROM users
INSERT INTO archive (id, status) SELECT id, N'a' 'b' FROM users
INSERT INTO archive (id, status) VALUES (32, TIME '1:2:3.5'), (33, TIME '-10:00'), (34, TIMESTAMP '2024-01-01 10:00:00.10'), (35, DATE '2024-1-2')
INSERT INTO archive (id, status) VALUES (30, 'a' 'b' "c"), (31, N'd' 'e')
UPDATE users SET name = 'x' 'y', email = CONCAT(name, '-' '-') WHERE id = 1
UPDATE orders SET total = 0x31 WHERE id < 0x3
CREATE INDEX by_name ON users (name(10), `email`(5) DESC)
CREATE TABLE notes (id int, n real, d double precision)
SELECT CAST('0.1' AS DOUBLE), CAST('5' AS INTEGER), DATE '2024-01-01', TIMESTAMP '2024-01-01 10:00:00'
SELECT id FROM orders LIMIT 2, 3
SELECT LEFT(name, 2), RIGHT(name, 2), MID(name, 1, 2), LPAD(name, 5, '0'), REPEAT('x', 3), INSTR(name, 'a') FROM users
SELECT SUBSTRING(name, 1, 2), SUBSTRING_INDEX(email, '@', 1), LOCATE('a', name), CHAR_LENGTH(name), REVERSE(name) FROM users
SELECT status, SUM(total) FROM orders GROUP BY status WITH ROLLUP
SELECT COUNT(DISTINCT status, user_id) FROM orders
SELECT shop.orders.id FROM shop.orders
SELECT 1 FROM DUAL
UPDATE orders o JOIN users u ON o.user_id = u.id SET o.status = 'paid' WHERE u.name = 'Ann'
UPDATE orders o LEFT JOIN users u ON o.user_id = u.id SET o.total = 0, o.status = u.name WHERE u.id IS NULL
UPDATE users u JOIN orders o ON o.user_id = u.id SET u.email = NULL WHERE o.total > 100
UPDATE orders, users SET orders.status = 'x' WHERE users.id = orders.user_id
UPDATE orders o JOIN users u ON o.user_id = u.id SET o.status = u.name, u.email = 'x', o.total = 5 WHERE u.id = 1
UPDATE orders, users SET total = 1, name = 'x' WHERE users.id = orders.user_id
DELETE o, u FROM orders o JOIN users u ON o.user_id = u.id WHERE u.name = 'Ann'
DELETE FROM orders, users USING orders LEFT JOIN users ON orders.user_id = users.id WHERE orders.id > 2
SET @x = 1
SET @x := (SELECT MAX(id) FROM orders), @y = 'a;b'
SELECT id, status FROM orders WHERE id = 1 INTO @x, @y
SELECT id INTO @x FROM orders WHERE id = 1
SELECT (@n := id + 1) AS n FROM orders
UPDATE IGNORE archive SET id = id + 11
SELECT id FROM orders LOCK IN SHARE MODE
SHOW TABLES LIKE 'o%'
INSERT INTO archive (id, status) SELECT t.id, t.s FROM JSON_TABLE('[{"id": 30, "s": "x"}, {"id": 31}]', '$[*]' COLUMNS (id INT PATH '$.id', s VARCHAR(20) PATH '$.s')) AS t
SELECT o.id, t.n, t.a FROM orders o, JSON_TABLE(o.extra, '$' COLUMNS (n FOR ORDINALITY, a TEXT PATH '$.a')) AS t
EXPLAIN UPDATE orders SET total = 1 WHERE id = 1
EXPLAIN DELETE o FROM orders o JOIN users u ON u.id = o.user_id
EXPLAIN REPLACE INTO users (id, name) VALUES (1, 'x')
EXPLAIN EXTENDED SELECT * FROM orders
DESC SELECT * FROM orders
ANALYZE SELECT id FROM orders
UPDATE orders SET status = 'x' WHERE total > 1 ORDER BY id DESC LIMIT 3
UPDATE orders SET placed = NOW() - INTERVAL 1 DAY, total = DEFAULT WHERE id = 1
DELETE FROM orders WHERE total > 1 ORDER BY id LIMIT 3
DELETE o FROM orders o JOIN users u ON o.user_id = u.id WHERE u.name = 'Ann'
DELETE orders FROM orders LEFT JOIN users ON orders.user_id = users.id WHERE users.id IS NULL
DELETE FROM o USING orders AS o JOIN users AS u ON o.user_id = u.id WHERE u.id = 3
DELETE FROM orders USING orders, users WHERE orders.user_id = users.id AND users.id = 3
INSERT INTO users (id, name) VALUES (1, 'x') ON DUPLICATE KEY UPDATE name = DEFAULT
INSERT INTO users SET id = 900, name = 'x'
INSERT INTO users (id, name) VALUES (1, 'x') ON DUPLICATE KEY UPDATE name = VALUES(name), email = CONCAT(email, 'x')
INSERT INTO archive (id, status) SELECT o.id, o.status FROM orders o ON DUPLICATE KEY UPDATE status = o.status
INSERT IGNORE INTO users (id, name) VALUES (1, 'x')
INSERT INTO users VALUES (901, 'a', 'b', NOW())
INSERT INTO users (id, name) VALUES (902, 'x') RETURNING id
REPLACE INTO users (id, name) VALUES (1, 'x')
REPLACE INTO archive SELECT id, status FROM orders
TRUNCATE TABLE archive
TRUNCATE archive
CREATE TABLE notes (id int AUTO_INCREMENT PRIMARY KEY, body text, n decimal(10,2) unsigned DEFAULT 0.5, KEY by_n (n)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
CREATE TABLE notes (id int, kind enum('a','b') NOT NULL DEFAULT 'a', at timestamp NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, UNIQUE KEY u (id)) COMMENT='x'
CREATE TABLE notes (id int PRIMARY KEY, u int, CONSTRAINT f FOREIGN KEY (u) REFERENCES users (id) ON DELETE SET NULL ON UPDATE CASCADE)
CREATE TABLE notes (a int, b int AS (a * 2) STORED, c int GENERATED ALWAYS AS (a + 1) VIRTUAL)
CREATE OR REPLACE VIEW v AS SELECT id FROM orders
DROP INDEX orders_status ON orders
CREATE TABLE notes (id int PRIMARY KEY, name varchar(50) COLLATE utf8mb4_unicode_ci, KEY k (name(10)))
ALTER TABLE orders MODIFY COLUMN total int
ALTER TABLE orders CHANGE COLUMN total amount decimal(12,2)
ALTER TABLE orders ADD COLUMN note int AFTER id, ADD INDEX by_total (total), DROP COLUMN extra
ALTER TABLE orders ADD CONSTRAINT u UNIQUE (user_id, placed)
ALTER TABLE orders DROP FOREIGN KEY orders_user
ALTER TABLE orders ALTER COLUMN total SET DEFAULT 3
ALTER TABLE orders DROP INDEX orders_status
CREATE TABLE t LIKE orders
RENAME TABLE archive TO t
SHOW TABLES
DESCRIBE orders
SHOW COLUMNS FROM orders
SHOW COLUMNS IN orders
SELECT * FROM orders FOR UPDATE
EXPLAIN SELECT * FROM orders
SELECT DATABASE()
SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()
WITH tables AS (SELECT 1 AS n) SELECT t.table_name FROM information_schema.tables t, tables
"""

SQLITE = """
SELECT printf('%.2f of %5d', total, id) FROM orders ORDER BY total DESC NULLS LAST, id ASC NULLS FIRST
SELECT json_extract(extra, '$.a'), extra->'$.a', extra->>'a', json_object('id', id), json_set(extra, '$.a', 1) FROM orders
SELECT j.key, j.value FROM orders, json_each(orders.extra) AS j
SELECT group_concat(name, ', '), total(id), max(id, 3), iif(id > 1, 'a', 'b'), ifnull(name, 'x'), typeof(name) FROM users
SELECT date('now', '-1 day'), datetime(placed), strftime('%Y-%m', placed), julianday('now'), unixepoch() FROM orders
SELECT name || ' ' || email, name GLOB 'a*', name IS NULL, name ISNULL, name NOTNULL, name IS NOT 'x' FROM users
SELECT name FROM users WHERE name = 'x' COLLATE NOCASE ORDER BY name COLLATE NOCASE DESC
SELECT rowid, name FROM users WHERE rowid = 1
SELECT [name], `email`, "id" FROM users
SELECT x'41', 1e3, .5, 7 % 3, 5 & 3, 1 << 2, ~5
SELECT 0x10, -0x10, 0xFFFFFFFFFFFFFFFF, id < 0x2 FROM orders
SELECT id FROM main.orders
SELECT count(*) FILTER (WHERE total > 5) FROM orders
SELECT id FROM orders LIMIT 2, 3
UPDATE orders SET status = 'paid' FROM users WHERE users.id = orders.user_id AND users.name = 'Ann'
UPDATE orders SET total = 0x1F WHERE id < 0x2
UPDATE orders SET (status, total) = ('paid', 3) WHERE id = 1
UPDATE orders SET extra = json_set(extra, '$.a', 'b') WHERE extra->>'a' = 'x' RETURNING id
DELETE FROM orders WHERE id = 1 RETURNING *
INSERT OR REPLACE INTO users (id, name) VALUES (1, 'x')
INSERT OR IGNORE INTO users (id, name) VALUES (1, 'x')
REPLACE INTO users (id, name) VALUES (1, 'x')
INSERT INTO users (id, name) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = excluded.name
INSERT INTO users (id, name) VALUES (1, 'x') ON CONFLICT DO NOTHING
INSERT INTO users DEFAULT VALUES
INSERT INTO users (name) VALUES ('x') RETURNING id
CREATE TABLE notes (id integer PRIMARY KEY AUTOINCREMENT, body text NOT NULL DEFAULT '', n real)
CREATE TABLE notes (id text PRIMARY KEY, n int) WITHOUT ROWID
CREATE TABLE notes (id integer PRIMARY KEY, n int) STRICT
CREATE TABLE notes (a int, b int GENERATED ALWAYS AS (a * 2) STORED)
CREATE TABLE notes (a, b)
CREATE INDEX part ON orders (id) WHERE total > 5
CREATE INDEX by_name ON users (lower(name))
DROP INDEX orders_status
EXPLAIN SELECT * FROM orders
EXPLAIN QUERY PLAN SELECT * FROM orders WHERE id = 1
WITH t(a, b) AS (VALUES (1, 'x'), (2, 'y')) UPDATE orders SET status = (SELECT b FROM t WHERE a = orders.id) WHERE id IN (SELECT a FROM t)
VALUES (1, 'a'), (2, 'b')
EXPLAIN QUERY PLAN UPDATE OR IGNORE orders SET total = 1 WHERE id = 1
EXPLAIN QUERY PLAN DELETE FROM orders WHERE id IN (SELECT id FROM archive)
INSERT INTO users (id, name) VALUES (7, hex(zeroblob(4))) RETURNING length(randomblob(16))
SELECT name, sql FROM sqlite_master WHERE type = 'table'
SELECT name, type FROM pragma_table_info('orders')
SELECT m.name, p."notnull" FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p WHERE m.type = 'table'
PRAGMA table_info(orders)
PRAGMA table_info('orders')
PRAGMA index_list(orders)
PRAGMA foreign_key_list(orders)
ANALYZE
ANALYZE orders
REINDEX orders_status
PRAGMA user_version = 5
PRAGMA integrity_check
PRAGMA quick_check
PRAGMA foreign_key_check
PRAGMA foreign_key_check(orders)
PRAGMA user_version
PRAGMA table_list
UPDATE OR IGNORE orders SET id = 2 WHERE id = 1
UPDATE OR REPLACE orders SET id = 98 WHERE id = 1
UPDATE OR ABORT orders SET id = 98 WHERE id = 1
UPDATE OR FAIL orders SET id = 98 WHERE id = 1
UPDATE OR ROLLBACK orders SET id = 98 WHERE id = 1
INSERT OR FAIL INTO users (id, name) VALUES (98, 'x')
INSERT OR ROLLBACK INTO users (id, name) VALUES (98, 'x')
INSERT INTO users (rowid, name) VALUES (98, 'x')
"""
