"""The queries that read a PostgreSQL database's catalog, as one row of JSON (`schema` makes a `Catalog` of it)."""

from __future__ import annotations

from runtimes.sql.checking.functions import EXTENSIONS, FUNCTIONS
from runtimes.sql.contract import Dialect

# Every relation of a schema that the user may use; and what views there reach in others, where writing them may end.
_SEEN = """made AS (
  SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relispartition, c.relowner,
    c.relhasrules, c.reltoastrelid, c.relacl, c.reloptions, c.relrowsecurity,
    pg_catalog.has_schema_privilege(n.oid, 'USAGE') AS usable
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
), hidden AS (
  SELECT oid FROM made WHERE NOT usable
), leads AS (
  SELECT w.ev_class AS of, d.refobjid AS oid FROM made JOIN pg_catalog.pg_rewrite w ON w.ev_class = made.oid
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = w.oid
    WHERE made.relkind = 'v' AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
    AND d.refobjid IN (SELECT oid FROM hidden)
  UNION SELECT inhparent, inhrelid FROM pg_catalog.pg_inherits WHERE inhparent IN (SELECT oid FROM hidden)
  UNION SELECT inhrelid, inhparent FROM pg_catalog.pg_inherits WHERE inhrelid IN (SELECT oid FROM hidden)
  UNION SELECT confrelid, conrelid FROM pg_catalog.pg_constraint
    WHERE contype = 'f' AND (confrelid IN (SELECT oid FROM hidden) OR conrelid IN (SELECT oid FROM hidden))
), led (oid) AS (
  SELECT oid FROM made WHERE usable
  UNION SELECT leads.oid FROM led JOIN leads ON leads.of = led.oid
), rel AS (
  SELECT made.* FROM made WHERE made.oid IN (SELECT oid FROM led)
)"""
QUERY = f"""
WITH RECURSIVE {_SEEN}, calls AS (  -- functions, also behind operators
  SELECT d.classid, d.objid, coalesce(o.oprcode::pg_catalog.oid, d.refobjid)::pg_catalog.int8 AS function
  FROM pg_catalog.pg_depend d LEFT JOIN pg_catalog.pg_operator o
    ON d.refclassid = 'pg_catalog.pg_operator'::pg_catalog.regclass AND o.oid = d.refobjid
  WHERE d.classid IN ('pg_catalog.pg_policy'::pg_catalog.regclass, 'pg_catalog.pg_attrdef'::pg_catalog.regclass,
      'pg_catalog.pg_constraint'::pg_catalog.regclass, 'pg_catalog.pg_type'::pg_catalog.regclass,
      'pg_catalog.pg_rewrite'::pg_catalog.regclass, 'pg_catalog.pg_class'::pg_catalog.regclass)
    AND (d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass OR o.oid IS NOT NULL)
), super AS (  -- what an extension brought is theirs; its owner may add others' to it
  SELECT oid FROM pg_catalog.pg_roles WHERE rolsuper
), held AS (  -- types that a column or another type holds
  SELECT atttypid AS type FROM pg_catalog.pg_attribute WHERE NOT attisdropped AND atttypid::pg_catalog.int8 >= 16384
  UNION SELECT typbasetype FROM pg_catalog.pg_type WHERE typbasetype <> 0
  UNION SELECT rngsubtype FROM pg_catalog.pg_range
)
SELECT pg_catalog.json_build_object(
 'version', pg_catalog.current_setting('server_version'),
 'track', pg_catalog.current_setting('track_counts'),
 'prepared', pg_catalog.current_setting('max_prepared_transactions'),
 'temp', pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMP'),
 'events', (SELECT pg_catalog.count(*) FROM pg_catalog.pg_event_trigger WHERE evtenabled <> 'D'),
 'relations', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(
    rel.oid::pg_catalog.int8, rel.nspname, rel.relname, rel.relkind, rel.relpersistence, rel.relispartition,
    EXISTS (SELECT 1 FROM pg_catalog.pg_inherits i WHERE i.inhparent = rel.oid),  -- relhassubclass lags behind
    pg_catalog.row_security_active(rel.oid), rel.usable AND pg_catalog.pg_has_role(rel.relowner, 'MEMBER'),
    (SELECT pg_catalog.string_agg(p, ',') FROM pg_catalog.unnest(
      ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRIGGER', 'TRUNCATE']::pg_catalog.text[]) AS p
      WHERE rel.usable AND pg_catalog.has_table_privilege(rel.oid, p)),
    rel.usable AND pg_catalog.has_any_column_privilege(rel.oid, 'SELECT, INSERT, UPDATE'),
    (SELECT i.inhparent::pg_catalog.int8 FROM pg_catalog.pg_inherits i WHERE i.inhrelid = rel.oid LIMIT 1),
    CASE WHEN rel.relkind = 'v' THEN (SELECT pg_catalog.json_agg(DISTINCT d.refobjid::pg_catalog.int8)
      FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_rewrite w ON w.oid = d.objid
      WHERE d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND w.ev_class = rel.oid
      AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid <> rel.oid) END,
    CASE WHEN rel.relhasrules THEN (SELECT pg_catalog.json_agg(pg_catalog.pg_get_ruledef(w.oid) ORDER BY w.rulename)
      FROM pg_catalog.pg_rewrite w WHERE w.ev_class = rel.oid) END,
    (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
      a.attnotnull, a.attgenerated, a.attidentity, pg_catalog.pg_get_expr(d.adbin, d.adrelid),
      a.attcollation::pg_catalog.int8,
      (SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(s.relname)
        FROM pg_catalog.pg_depend o JOIN pg_catalog.pg_class s ON s.oid = o.objid AND s.relkind = 'S'
        JOIN pg_catalog.pg_namespace n ON n.oid = s.relnamespace
        WHERE o.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND o.refclassid = o.classid
        AND o.refobjid = rel.oid AND o.refobjsubid = a.attnum AND o.deptype IN ('a', 'i') LIMIT 1))
      ORDER BY a.attnum)
      FROM pg_catalog.pg_attribute a
      LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      WHERE a.attrelid = rel.oid AND a.attnum > 0 AND NOT a.attisdropped), rel.usable)
    ORDER BY rel.nspname, rel.relname) FROM rel),
 'indexes', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(
    x.indrelid::pg_catalog.int8, x.indisprimary, x.indisunique, x.indimmediate, x.indpred IS NOT NULL,
    x.indexprs IS NOT NULL, x.indisexclusion, x.indisvalid, pg_catalog.pg_get_indexdef(x.indexrelid),
    (SELECT c.relname FROM pg_catalog.pg_class c WHERE c.oid = x.indexrelid),
    (SELECT pg_catalog.json_agg(a.attname ORDER BY k.n) FROM pg_catalog.unnest(x.indkey::pg_catalog.int2[])
      WITH ORDINALITY AS k(number, n) JOIN pg_catalog.pg_attribute a
      ON a.attrelid = x.indrelid AND a.attnum = k.number WHERE k.n <= x.indnkeyatts))
    ORDER BY x.indexrelid) FROM pg_catalog.pg_index x JOIN rel ON rel.oid = x.indrelid
    WHERE x.indisvalid OR (x.indisready AND (x.indisunique OR x.indisexclusion))),
 'constraints', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(
    f.conrelid::pg_catalog.int8, f.contype, f.conname, f.confrelid::pg_catalog.int8, f.confdeltype, f.confupdtype,
    (SELECT pg_catalog.json_agg(a.attname ORDER BY k.n) FROM pg_catalog.unnest(f.conkey)
      WITH ORDINALITY AS k(number, n)
      JOIN pg_catalog.pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.number),
    (SELECT pg_catalog.json_agg(a.attname ORDER BY k.n) FROM pg_catalog.unnest(f.confkey)
      WITH ORDINALITY AS k(number, n)
      JOIN pg_catalog.pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = k.number),
    pg_catalog.pg_get_constraintdef(f.oid), f.conparentid <> 0, f.convalidated,
    pg_catalog.obj_description(f.oid, 'pg_constraint'))
    ORDER BY f.conrelid, f.conname) FROM pg_catalog.pg_constraint f JOIN rel ON rel.oid = f.conrelid),
 'nested', (SELECT pg_catalog.json_agg(DISTINCT pg_catalog.jsonb_build_array(a.attrelid::pg_catalog.int8,
      t.typtype IN ('c', 'd') OR coalesce(e.typtype IN ('c', 'd'), false))) FROM pg_catalog.pg_attribute a
    JOIN rel ON rel.oid = a.attrelid JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem
    WHERE a.attnum > 0 AND NOT a.attisdropped AND (t.typtype IN ('c', 'd', 'r') OR e.typtype IN ('c', 'd', 'r'))),
 'path', (SELECT pg_catalog.substr(one, 13) FROM pg_catalog.pg_db_role_setting s, pg_catalog.unnest(s.setconfig) one
    WHERE one ~ '^search_path='
    AND s.setrole IN (0, (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = session_user))
    AND s.setdatabase IN (0, (SELECT d.oid FROM pg_catalog.pg_database d
      WHERE d.datname = pg_catalog.current_database()))
    ORDER BY s.setrole <> 0 DESC, s.setdatabase <> 0 DESC LIMIT 1),  -- as the server itself would choose
 'shadows', (SELECT pg_catalog.json_agg(DISTINCT pg_catalog.jsonb_build_array(n.nspname, p.proname))
    FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname !~ '^pg_'
    AND (p.proname = ANY('{{{",".join(sorted(FUNCTIONS[Dialect.POSTGRESQL]))}}}')  -- also what newer servers alone have
      OR EXISTS (SELECT 1 FROM pg_catalog.pg_proc o WHERE o.proname = p.proname
        AND o.pronamespace = 'pg_catalog'::pg_catalog.regnamespace))
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e'
      AND d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass
      AND p.proowner IN (SELECT super.oid FROM super))),
 'extended', (SELECT pg_catalog.json_agg(DISTINCT pg_catalog.jsonb_build_array(e.extname, n.nspname, p.proname))
    FROM pg_catalog.pg_extension e
    JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.refobjid = e.oid
      AND d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.deptype = 'e'
    JOIN pg_catalog.pg_proc p ON p.oid = d.objid JOIN pg_catalog.pg_language l ON l.oid = p.prolang AND l.lanname = 'c'
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE p.proname = ANY('{{{",".join(sorted(name for some in EXTENSIONS.values() for name in some))}}}')
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_proc o WHERE o.proname = p.proname
      AND (o.prolang <> p.prolang OR NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend x
        WHERE x.refclassid = d.refclassid AND x.refobjid = e.oid
        AND x.classid = d.classid AND x.objid = o.oid AND x.deptype = 'e')))),
 'operators', (SELECT pg_catalog.json_agg(DISTINCT pg_catalog.jsonb_build_array(n.nspname, p.oprname))
    FROM pg_catalog.pg_operator p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.oprnamespace WHERE n.nspname !~ '^pg_'
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e'
      AND d.classid = 'pg_catalog.pg_operator'::pg_catalog.regclass
      AND p.oprowner IN (SELECT super.oid FROM super))),
 'beneath', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(
    CASE WHEN edge.way = 'child' AND c.relkind = 'f' THEN 'view' ELSE edge.way END,  -- its rows are elsewhere
    rn.nspname, r.relname, cn.nspname, c.relname) ORDER BY edge.way, r.oid, c.oid)
    FROM (SELECT 'view' AS way, w.ev_class AS reader, d.refobjid AS read FROM pg_catalog.pg_rewrite w
        JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = w.oid
        WHERE w.ev_type = '1' AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid <> w.ev_class
      UNION SELECT 'child', i.inhparent, i.inhrelid FROM pg_catalog.pg_inherits i
      UNION SELECT 'parent', i.inhrelid, i.inhparent FROM pg_catalog.pg_inherits i) edge
    JOIN pg_catalog.pg_class r ON r.oid = edge.reader JOIN pg_catalog.pg_namespace rn ON rn.oid = r.relnamespace
    JOIN pg_catalog.pg_class c ON c.oid = edge.read JOIN pg_catalog.pg_namespace cn ON cn.oid = c.relnamespace
    WHERE r.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
      AND rn.nspname <> 'information_schema' AND rn.nspname !~ '^pg_'),
 'opaque', (WITH seen AS MATERIALIZED (  -- else the server writes out each of its own hundred views first
      SELECT w.oid, w.ev_class, n.nspname, c.relname
      FROM pg_catalog.pg_rewrite w JOIN pg_catalog.pg_class c ON c.oid = w.ev_class
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE w.ev_type = '1' AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_')
    SELECT pg_catalog.json_agg(DISTINCT pg_catalog.jsonb_build_array(seen.nspname, seen.relname))  -- may read others
    FROM seen WHERE (pg_catalog.pg_get_viewdef(seen.ev_class)
        ~ '\\m((query|table|schema|database|cursor)_to_xml|ts_stat|ts_rewrite|pg_stat)'
        OR EXISTS (SELECT 1 FROM pg_catalog.pg_depend d
          WHERE d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = seen.oid
          AND d.refclassid IN ('pg_catalog.pg_proc'::pg_catalog.regclass, 'pg_catalog.pg_operator'::pg_catalog.regclass)
          AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend e WHERE e.classid = d.refclassid AND e.objid = d.refobjid
            AND e.deptype = 'e' AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_proc p WHERE p.oid = d.refobjid
              AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND p.provolatile <> 'i'))))),
 'guards', (SELECT pg_catalog.json_agg(DISTINCT pg_catalog.jsonb_build_array(
    p.polrelid::pg_catalog.int8, n.nspname, c.relname))
    FROM pg_catalog.pg_policy p JOIN rel ON rel.oid = p.polrelid AND rel.relrowsecurity
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass AND d.objid = p.oid
    JOIN pg_catalog.pg_class c ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND c.oid = d.refobjid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid <> p.polrelid),
 'judges', (SELECT pg_catalog.json_agg(DISTINCT pg_catalog.jsonb_build_array(
    p.polrelid::pg_catalog.int8, calls.function))
    FROM pg_catalog.pg_policy p JOIN rel ON rel.oid = p.polrelid AND rel.relrowsecurity
    JOIN calls ON calls.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass AND calls.objid = p.oid),
 'casts', (SELECT pg_catalog.json_agg(DISTINCT pg_catalog.jsonb_build_array(
    t.typrelid::pg_catalog.int8, x.castfunc::pg_catalog.int8,
    'pg_catalog.text'::pg_catalog.regtype IN (x.castsource, x.casttarget),
    greatest(x.castsource, x.casttarget)::pg_catalog.int8 >= 16384))
    FROM pg_catalog.pg_cast x JOIN pg_catalog.pg_type t ON t.oid IN (x.castsource, x.casttarget)
    WHERE x.oid::pg_catalog.int8 >= 16384  -- what came with the server has smaller numbers
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_type y WHERE y.oid IN (x.castsource, x.casttarget)
      AND y.oid::pg_catalog.int8 >= 16384 AND y.typrelid NOT IN (SELECT rel.oid FROM rel)
      AND NOT EXISTS (SELECT 1 FROM held WHERE held.type IN (y.oid, y.typarray, y.typelem)))),
 'typed', (SELECT pg_catalog.json_agg(DISTINCT a.attrelid::pg_catalog.int8) FROM pg_catalog.pg_attribute a
    JOIN rel ON rel.oid = a.attrelid WHERE a.atttypid::pg_catalog.int8 >= 16384 AND NOT a.attisdropped),
 'domains', (SELECT pg_catalog.json_agg(DISTINCT calls.function) FROM pg_catalog.pg_constraint f
    JOIN calls ON calls.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND calls.objid = f.oid
    WHERE f.contypid <> 0),
 'far', (WITH RECURSIVE far (oid) AS (
      SELECT c.oid FROM pg_catalog.pg_class c WHERE c.relkind = 'f'
      UNION SELECT up.oid FROM far JOIN (
        SELECT w.ev_class AS oid, d.refobjid AS of FROM pg_catalog.pg_rewrite w
          JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = w.oid
          WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
        UNION ALL SELECT i.inhparent, i.inhrelid FROM pg_catalog.pg_inherits i) up ON up.of = far.oid)
    SELECT pg_catalog.json_agg(DISTINCT c.relname) FROM far JOIN pg_catalog.pg_class c ON c.oid = far.oid),
 'computes', (SELECT pg_catalog.json_agg(DISTINCT pg_catalog.jsonb_build_array(
    made.relation::pg_catalog.int8, calls.function))
    FROM (SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass AS of, a.oid, a.adrelid AS relation
        FROM pg_catalog.pg_attrdef a
      UNION ALL SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, f.oid, f.conrelid
        FROM pg_catalog.pg_constraint f WHERE f.contype = 'c' AND f.conrelid <> 0
      UNION ALL SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, f.oid, a.attrelid
        FROM pg_catalog.pg_constraint f JOIN pg_catalog.pg_attribute a ON a.atttypid = f.contypid
        WHERE f.contypid <> 0 AND NOT a.attisdropped
      UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid, a.attrelid
        FROM pg_catalog.pg_type t JOIN pg_catalog.pg_attribute a ON a.atttypid = t.oid
        WHERE t.typtype = 'd' AND NOT a.attisdropped
      UNION ALL SELECT 'pg_catalog.pg_rewrite'::pg_catalog.regclass, w.oid, w.ev_class
        FROM pg_catalog.pg_rewrite w WHERE w.ev_type <> '1'
      UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, c.oid, c.oid  -- the key of its partitions
        FROM pg_catalog.pg_class c WHERE c.relkind = 'p') made
    JOIN rel ON rel.oid = made.relation JOIN calls ON calls.classid = made.of AND calls.objid = made.oid),
 'triggers', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(
    t.tgrelid::pg_catalog.int8, t.tgname, t.tgtype, t.tgenabled, pg_catalog.pg_get_triggerdef(t.oid), l.lanname,
    f.proname, f.prosrc, f.prosecdef, t.tgparentid <> 0)
    ORDER BY t.tgrelid, t.tgname)
    FROM pg_catalog.pg_trigger t JOIN rel ON rel.oid = t.tgrelid JOIN pg_catalog.pg_proc f ON f.oid = t.tgfoid
    JOIN pg_catalog.pg_language l ON l.oid = f.prolang WHERE NOT t.tgisinternal)
)::pg_catalog.text
"""

# The fields of the row types that columns hold. For this the server sets aside much more than for all of the above.
COMPOSITES = f"""
WITH RECURSIVE {_SEEN}, used(relation, type) AS (
  SELECT a.attrelid, a.atttypid FROM pg_catalog.pg_attribute a JOIN rel ON rel.oid = a.attrelid
    WHERE a.attnum > 0 AND NOT a.attisdropped
  UNION SELECT used.relation, inner_.type FROM used JOIN pg_catalog.pg_type t ON t.oid = used.type
    CROSS JOIN LATERAL (SELECT t.typelem AS type UNION SELECT t.typbasetype
      UNION SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE r.rngtypid = t.oid
      UNION SELECT a.atttypid FROM pg_catalog.pg_attribute a WHERE a.attrelid = t.typrelid
        AND t.typtype = 'c' AND a.attnum > 0 AND NOT a.attisdropped) inner_ WHERE inner_.type <> 0)
SELECT used.relation::pg_catalog.int8, t.oid::pg_catalog.int8, a.attname, a.attnum,
  pg_catalog.format_type(a.atttypid, a.atttypmod)
FROM used JOIN pg_catalog.pg_type t ON t.oid = used.type AND t.typtype = 'c'
JOIN pg_catalog.pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY used.relation, t.oid, a.attnum
"""
