"""What belongs to a table beside its definition, and goes with it when it is dropped: whom it was granted to, its row
policies, comments, labels, options, statistics and publications. No plan depends on it, so it isn't in a schema's hash.
"""

from __future__ import annotations

import hashlib

from runtimes.sql.postgres.link import Link
from runtimes.sql.postgres.relations import Relation

# `part`: the table, its indexes, sequences, constraints, triggers and policies.
_QUERY = """
WITH part(class, oid, name) AS (
  SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, c.oid, c.relname::pg_catalog.text FROM pg_catalog.pg_class c
    WHERE c.oid = %s::pg_catalog.oid OR c.oid IN (SELECT x.indexrelid FROM pg_catalog.pg_index x WHERE x.indrelid = %s)
    OR (c.relkind = 'S' AND c.oid IN (SELECT d.objid FROM pg_catalog.pg_depend d WHERE d.refobjid = %s
      AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.deptype IN ('a', 'i')))
  UNION ALL SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, f.oid, f.conname
    FROM pg_catalog.pg_constraint f WHERE f.conrelid = %s
  UNION ALL SELECT 'pg_catalog.pg_trigger'::pg_catalog.regclass, t.oid, t.tgname
    FROM pg_catalog.pg_trigger t WHERE t.tgrelid = %s AND NOT t.tgisinternal
  UNION ALL SELECT 'pg_catalog.pg_policy'::pg_catalog.regclass, p.oid, p.polname
    FROM pg_catalog.pg_policy p WHERE p.polrelid = %s
  UNION ALL SELECT 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass, s.oid, s.stxname
    FROM pg_catalog.pg_statistic_ext s WHERE s.stxrelid = %s
)
SELECT pg_catalog.json_build_array(
 (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(c.relname, c.relowner::pg_catalog.regrole, c.relacl,
    c.reloptions, c.reltablespace, c.relrowsecurity, c.relforcerowsecurity, c.relreplident,
    (SELECT t.reloptions FROM pg_catalog.pg_class t WHERE t.oid = c.reltoastrelid),
    (SELECT m.amname FROM pg_catalog.pg_am m WHERE m.oid = c.relam),
    (SELECT pg_catalog.json_build_array(x.indisclustered, x.indisreplident) FROM pg_catalog.pg_index x
      WHERE x.indexrelid = c.oid)) ORDER BY c.relname)
   FROM part JOIN pg_catalog.pg_class c ON c.oid = part.oid
   WHERE part.class = 'pg_catalog.pg_class'::pg_catalog.regclass),
 (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(a.attname, a.attacl, a.attoptions, a.attstattarget,
    a.attstorage, pg_catalog.to_jsonb(a) -> 'attcompression') ORDER BY a.attnum)
   FROM pg_catalog.pg_attribute a WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped),
 (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(p.polname, p.polcmd, p.polpermissive,
    p.polroles::pg_catalog.regrole[], pg_catalog.pg_get_expr(p.polqual, p.polrelid),
    pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid)) ORDER BY p.polname)
   FROM pg_catalog.pg_policy p WHERE p.polrelid = %s),
 (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(s.stxname, pg_catalog.pg_get_statisticsobjdef(s.oid))
    ORDER BY s.stxname) FROM pg_catalog.pg_statistic_ext s WHERE s.stxrelid = %s),
 (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(part.class, part.name, d.objsubid, d.description)
    ORDER BY part.class, part.name, d.objsubid)
   FROM part JOIN pg_catalog.pg_description d ON d.classoid = part.class AND d.objoid = part.oid),
 (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(part.class, part.name, l.objsubid, l.provider, l.label)
    ORDER BY part.class, part.name, l.objsubid, l.provider)
   FROM part JOIN pg_catalog.pg_seclabel l ON l.classoid = part.class AND l.objoid = part.oid),
 (SELECT pg_catalog.json_agg(p.pubname ORDER BY p.pubname) FROM pg_catalog.pg_publication_rel r
   JOIN pg_catalog.pg_publication p ON p.oid = r.prpubid WHERE r.prrelid = %s)
)::pg_catalog.text
"""


def digest(link: Link, relation: Relation) -> str:
    """Return a digest of all that belongs to a table, in the transaction that there is."""
    found = link.ask(_QUERY, *[str(relation.oid)] * _QUERY.count("%s"))[0][0]
    return hashlib.sha256(str(found).encode()).hexdigest()
