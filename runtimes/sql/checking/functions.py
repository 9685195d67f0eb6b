"""Which functions and types a statement may name, by dialect. A name that isn't listed is refused.

Listed functions compute from their arguments, the session or the clock. None reads files or other databases, nor, but
for DEFINITIONS, the catalog; none waits, locks, signals, sets anything, opens a connection, runs text as SQL, or moves
a sequence. Each is the server's own: of a name that it doesn't know, MariaDB would call what somebody made.
"""

from __future__ import annotations

from collections.abc import Mapping

from runtimes.sql.checking.nodes import names
from runtimes.sql.contract import Dialect

_EVERYWHERE = """
    count sum avg min max abs coalesce nullif lower upper length replace round row_number rank dense_rank percent_rank
    cume_dist ntile lag lead first_value last_value nth_value ltrim rtrim trim sign substr concat concat_ws
    sqrt power exp ln log log10 mod floor ceil ceiling sin cos tan asin acos atan atan2 degrees radians pi
"""
_POSTGRES = """
    char_length character_length octet_length bit_length btrim split_part strpos left right reverse initcap
    translate ascii chr to_char to_number to_date to_timestamp starts_with substring
    regexp_replace regexp_match regexp_matches regexp_count regexp_like regexp_substr regexp_instr
    regexp_split_to_array regexp_split_to_table string_to_array string_to_table array_to_string format quote_literal
    quote_ident quote_nullable md5 sha224 sha256 sha384 sha512 encode decode to_hex get_byte get_bit normalize
    unistr trunc div cbrt gcd lcm factorial random width_bucket scale trim_scale min_scale greatest least num_nulls
    num_nonnulls now clock_timestamp statement_timestamp transaction_timestamp timeofday age date_part date_trunc
    date_bin extract make_date make_time make_timestamp make_timestamptz make_interval justify_days justify_hours
    justify_interval isfinite date to_jsonb to_json row_to_json json_build_object json_build_array jsonb_build_object
    jsonb_build_array json_object jsonb_object json_array_length jsonb_array_length json_array_elements
    jsonb_array_elements json_array_elements_text jsonb_array_elements_text json_each jsonb_each json_each_text
    jsonb_each_text json_object_keys jsonb_object_keys json_typeof jsonb_typeof jsonb_set jsonb_set_lax jsonb_insert
    json_strip_nulls jsonb_strip_nulls jsonb_pretty json_extract_path json_extract_path_text jsonb_extract_path
    jsonb_extract_path_text jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_array
    jsonb_path_query_first array_to_json string_agg array_agg json_agg jsonb_agg json_object_agg jsonb_object_agg
    bool_and bool_or every bit_and bit_or bit_xor stddev stddev_pop stddev_samp variance var_pop var_samp corr
    covar_pop covar_samp regr_slope regr_intercept regr_r2 regr_count mode percentile_cont percentile_disc grouping
    array_append array_cat array_dims array_length array_lower array_ndims array_position array_positions
    array_prepend array_remove array_replace array_upper cardinality trim_array unnest generate_series
    generate_subscripts to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery ts_rank ts_rank_cd
    ts_headline setweight gen_random_uuid host masklen network family abbrev broadcast netmask lower_inc upper_inc
    lower_inf upper_inf isempty int4range int8range numrange tsrange tstzrange daterange range_agg row
    overlay position all any some lpad rpad repeat nextval current_schema current_database
    point box circle line lseg path polygon center diameter radius area height width npoints isclosed isopen slope
    bound_box diagonal int4multirange int8multirange nummultirange tsmultirange tstzmultirange datemultirange
    multirange range_merge range_intersect_agg array_to_tsvector ts_delete strip numnode querytree tsvector_to_array
    text array json_to_record jsonb_to_record json_to_recordset jsonb_to_recordset
    bit_count convert_from convert_to set_byte set_bit hostmask inet_merge inet_same_family set_masklen
    sinh cosh tanh asinh acosh atanh tsquery_phrase ts_filter
"""
_MARIADB = """
    char_length character_length octet_length bit_length lcase ucase left right mid substring substring_index locate
    instr position lpad rpad repeat reverse space strcmp field elt find_in_set format ascii ord char hex unhex bin oct
    conv md5 sha sha1 sha2 crc32 to_base64 from_base64 insert quote soundex concat make_set export_set if ifnull isnull
    nvl nvl2 greatest least interval truncate pow log2 rand cot now curdate curtime sysdate current_timestamp
    localtime localtimestamp utc_date utc_time utc_timestamp unix_timestamp from_unixtime date time timestamp year
    quarter month monthname week weekofyear weekday yearweek day dayname dayofmonth dayofweek dayofyear hour minute
    second microsecond date_add date_sub adddate subdate addtime subtime datediff timediff timestampdiff timestampadd
    date_format time_format str_to_date makedate maketime last_day to_days from_days to_seconds
    sec_to_time time_to_sec period_add period_diff convert_tz add_months group_concat bit_and bit_or
    bit_xor bit_count std stddev stddev_pop stddev_samp variance var_pop var_samp median json_array
    json_object json_array_append json_array_insert json_arrayagg json_objectagg json_contains json_contains_path
    json_depth json_extract json_insert json_keys json_length json_merge_patch json_merge_preserve json_query
    json_quote json_remove json_replace json_search json_set json_type json_unquote json_valid json_value json_exists
    regexp_replace regexp_substr regexp_instr uuid inet_aton inet_ntoa inet6_aton inet6_ntoa is_ipv4 is_ipv6 values
    value percentile_cont percentile_disc to_char mod row database
    st_geomfromtext st_geometryfromtext st_pointfromtext st_linefromtext st_polygonfromtext st_geomfromwkb st_astext
    st_aswkt st_aswkb st_asbinary st_x st_y st_srid st_distance st_distance_sphere st_contains st_within st_intersects
    st_equals st_disjoint st_touches st_crosses st_overlaps st_area st_length st_centroid st_envelope st_buffer
    st_geometrytype st_numpoints st_isempty st_startpoint st_endpoint st_pointn st_asgeojson st_geomfromgeojson
    mbrcontains mbrwithin mbrintersects point linestring polygon multipoint multilinestring multipolygon
    geometrycollection
"""
_SQLITE = """
    char hex unhex instr iif ifnull typeof unicode trunc acosh asinh atanh cosh sinh tanh random date time datetime
    julianday strftime unixepoch timediff total group_concat string_agg like glob likely unlikely likelihood quote
    json json_array json_array_length json_error_position json_extract json_insert json_object json_patch json_pretty
    json_quote json_remove json_replace json_set json_type json_valid json_group_array json_group_object json_each
    json_tree nullif octet_length if printf format zeroblob randomblob snippet highlight bm25 matchinfo offsets
    pragma_table_info pragma_table_xinfo pragma_index_list pragma_index_info pragma_index_xinfo pragma_foreign_key_list
    pragma_table_list pragma_user_version pragma_integrity_check pragma_quick_check pragma_foreign_key_check
"""

FUNCTIONS: Mapping[Dialect, frozenset[str]] = {
    Dialect.POSTGRESQL: names(_EVERYWHERE, _POSTGRES),
    Dialect.MARIADB: names(_EVERYWHERE, _MARIADB),
    Dialect.SQLITE: names(_EVERYWHERE, _SQLITE),
}

# PostgreSQL's that are part of its grammar: no schema may stand before them, and nobody's function stands in for them.
BY_GRAMMAR: frozenset[str] = names("coalesce nullif greatest least grouping row array any some all")

# What extensions of PostgreSQL compute in C, of no table and of nothing outside. Of a name that somebody else has given
# to a function, too, none is.
EXTENSIONS: Mapping[str, frozenset[str]] = {
    "pg_trgm": names("similarity word_similarity strict_word_similarity show_trgm"),
    "unaccent": names("unaccent"),
    "uuid-ossp": names(
        """uuid_generate_v1 uuid_generate_v1mc uuid_generate_v3 uuid_generate_v4 uuid_generate_v5 uuid_nil uuid_ns_dns
        uuid_ns_url uuid_ns_oid uuid_ns_x500"""
    ),
    "pgcrypto": names("digest hmac crypt gen_salt gen_random_bytes encrypt decrypt pgp_sym_encrypt pgp_sym_decrypt"),
    "fuzzystrmatch": names("levenshtein levenshtein_less_equal soundex difference metaphone dmetaphone dmetaphone_alt"),
    "hstore": names(
        """hstore akeys avals exist exists_all exists_any defined slice hstore_to_json hstore_to_jsonb hstore_to_array
        hstore_to_matrix"""
    ),
    "ltree": names("subltree subpath nlevel lca text2ltree ltree2text"),
    "intarray": names("icount idx sort sort_asc sort_desc uniq subarray intset"),
    "cube": names("cube cube_dim cube_distance cube_enlarge cube_ll_coord cube_ur_coord cube_union cube_inter"),
}

# PostgreSQL's classes of operators that an index may name; only a superuser makes one.
OPERATOR_CLASSES: frozenset[str] = names(
    """text_pattern_ops varchar_pattern_ops bpchar_pattern_ops jsonb_ops jsonb_path_ops array_ops inet_ops gin_trgm_ops
    gist_trgm_ops gist_ltree_ops gin__int_ops gist__int_ops gist_hstore_ops gin_hstore_ops"""
)

# What gives the key that the last INSERT counted up. It may stand in what follows an INSERT of the same program; before
# that it would tell of GoEx's own.
LAST_KEYS: Mapping[Dialect, frozenset[str]] = {
    Dialect.POSTGRESQL: names("currval lastval"),
    Dialect.MARIADB: names("last_insert_id"),
    Dialect.SQLITE: names("last_insert_rowid"),
}

# SQLite's PRAGMAs that say how something is defined, which read what sqlite_schema holds; their columns.
DEFINITIONS: Mapping[str, str] = {
    "table_info": "cid name type notnull dflt_value pk",
    "table_xinfo": "cid name type notnull dflt_value pk hidden",
    "index_list": "seq name unique origin partial",
    "index_info": "seqno cid name",
    "index_xinfo": "seqno cid name desc coll key",
    "foreign_key_list": "id seq table from to on_update on_delete match",
    "table_list": "schema name type ncol wr strict",
    "user_version": "user_version",
}
# And those that look through the rows of every table.
CHECKS: Mapping[str, str] = {
    "integrity_check": "integrity_check",
    "quick_check": "quick_check",
    "foreign_key_check": "table rowid parent fkid",
}
PRAGMAS: Mapping[str, str] = {**DEFINITIONS, **CHECKS}
SETS: frozenset[str] = names("user_version")  # what a PRAGMA with a value behind it would set
FILE_NUMBERS: frozenset[str] = names("user_version application_id")  # which may be set

# PostgreSQL's functions whose rows have the columns that are defined behind their alias: AS t(a integer, b text).
RECORDS: frozenset[str] = names("json_to_record jsonb_to_record json_to_recordset jsonb_to_recordset")

# Functions that give rows: they may stand where a table does, and read none. Their columns; (): one, which goes by the
# name that the function is given there. They have to be known: PostgreSQL takes `alias.name` for the call name(alias)
# where there is no such column.
ROW_FUNCTIONS: Mapping[Dialect, Mapping[str, tuple[str, ...]]] = {
    Dialect.POSTGRESQL: {
        **dict.fromkeys(
            names(
                """generate_series generate_subscripts unnest json_object_keys jsonb_object_keys jsonb_path_query
                regexp_matches regexp_split_to_table string_to_table"""
            ),
            (),
        ),
        **dict.fromkeys(
            names(
                """json_array_elements jsonb_array_elements json_array_elements_text
                jsonb_array_elements_text"""
            ),
            ("value",),
        ),
        **dict.fromkeys(names("json_each jsonb_each json_each_text jsonb_each_text"), ("key", "value")),
        **dict.fromkeys(RECORDS, ()),
    },
    Dialect.MARIADB: {},
    Dialect.SQLITE: {
        **dict.fromkeys(
            names("json_each json_tree"),
            ("key", "value", "type", "atom", "id", "parent", "fullkey", "path", "json", "root"),
        ),
        **{f"pragma_{name}": tuple(columns.split()) for name, columns in PRAGMAS.items()},
    },
}

# MariaDB's functions that its older versions haven't: there a call means anybody's function of that name.
MARIADB_SINCE: Mapping[str, tuple[int, int, int]] = {"add_months": (10, 6, 1), "to_char": (10, 6, 1)}

# MariaDB's functions that are its own only with as many arguments (None: or more); else a call means anybody's.
MARIADB_GEOMETRIES: Mapping[str, tuple[int, int | None]] = {
    "point": (2, 2),
    **dict.fromkeys(names("linestring polygon multipoint multilinestring multipolygon geometrycollection"), (1, None)),
}

# MariaDB's functions whose first argument is a unit of time.
UNIT_FIRST: frozenset[str] = frozenset({"timestampdiff", "timestampadd"})

# sqlglot's names of types (exp.DataType.Type). Others may be named where a column of the schema has them.
TYPES: frozenset[str] = names(
    """
    BIGINT BIGSERIAL BINARY BIT BLOB BOOLEAN CHAR DATE DATERANGE DATETIME DATETIME2 DECIMAL DOUBLE ENUM FLOAT INET
    INT INT4RANGE INT8RANGE INTERVAL JSON JSONB LONGBLOB LONGTEXT MEDIUMBLOB MEDIUMINT MEDIUMTEXT MONEY NCHAR NUMRANGE
    NVARCHAR SERIAL SET SMALLINT SMALLSERIAL TEXT TIME TIMETZ TIMESTAMP TIMESTAMPNTZ TIMESTAMPTZ TINYBLOB TINYINT
    TINYTEXT TSRANGE TSTZRANGE UBIGINT UINT UMEDIUMINT USMALLINT UTINYINT UDECIMAL UDOUBLE UUID VARBINARY VARCHAR
    YEAR ARRAY CIDR MACADDR POINT TSVECTOR TSQUERY HSTORE VARBIT INT4MULTIRANGE INT8MULTIRANGE NUMMULTIRANGE
    TSMULTIRANGE TSTZMULTIRANGE DATEMULTIRANGE
    """
)
