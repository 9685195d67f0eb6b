"""What a tree may be made of: every kind of node with the parts that it may have, and every bare word in it.

A kind, a part or a word that isn't here is refused, also one that a later sqlglot adds. Names are sqlglot's classes.
"""

from __future__ import annotations

import string
from collections.abc import Mapping

from sqlglot import exp

_SMALL = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def names(*texts: str) -> frozenset[str]:
    """Return the words of all the texts."""
    return frozenset(word for text in texts for word in text.split())


def lower(name: str) -> str:
    """A name in small letters as engines fold it: A to Z alone, whatever the locale."""
    return name.translate(_SMALL)


_BINARY = names("""
    Add Sub Mul Div Mod IntDiv EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ And Or Xor Is DPipe BitwiseAnd BitwiseOr
    BitwiseXor BitwiseLeftShift BitwiseRightShift Escape Glob Collate Pow RegexpLike RegexpILike SimilarTo Overlaps
    ArrayContainsAll ArrayContainedBy ArrayOverlaps JSONBContainsTopKey JSONBContainsAllTopKeys
    JSONBContainsAnyTopKeys JSONBPathExists JSONBDeleteAtPath JSONBExtract JSONBExtractScalar Filter WithinGroup
    Distance
""")
_QUERY = "with_ joins laterals where group having windows order limit offset"

NODES: Mapping[str, frozenset[str]] = {
    **{name: frozenset({"this", "expression", "safe", "typed", "negate"}) for name in _BINARY},
    **{
        name: frozenset(parts.split())
        for name, parts in {
            # literals and names
            "Literal": "this is_string",
            "National": "this",
            "HexString": "this is_integer",
            "BitString": "this",
            "Null": "",
            "Boolean": "this",
            "Identifier": "this quoted",
            "Column": "this table db",
            "Star": "",
            "Var": "this",
            "Alias": "this alias",
            # operators
            "Not": "this",
            "Neg": "this",
            "BitwiseNot": "this",
            "Paren": "this",
            "Tuple": "expressions",
            "Between": "this low high symmetric",
            "In": "this expressions query",
            "Like": "this expression negate",
            "ILike": "this expression negate",
            "Exists": "this",
            "Match": "this expression",
            "Any": "this",
            "All": "this",
            "Case": "this ifs default",
            "If": "this true false",
            "Cast": "this to",
            "DataType": "this expressions nested values kind",
            "DataTypeParam": "this",
            "Interval": "this unit",
            "IntervalSpan": "this expression",
            "Bracket": "this expressions offset",
            "Slice": "this expression",
            "Array": "expressions bracket_notation",
            "AtTimeZone": "this zone",
            "JSONExtract": "this expression",
            "JSONExtractScalar": "this expression",
            "MatchAgainst": "this expressions modifier",
            "Introducer": "this expression",
            "JSONTable": "this path schema",
            "JSONSchema": "expressions",
            "JSONColumnDef": "this kind path ordinality",
            # MariaDB's variables
            "Parameter": "this",
            "PropertyEQ": "this expression",
            # functions: those named in `functions`, and those with a grammar of their own
            "Anonymous": "this expressions",
            "Dot": "this expression",  # a function or a type of PostgreSQL with its schema, see `allowlist`
            "Kwarg": "this expression",
            "Distinct": "expressions on",
            "Order": "this expressions",
            "Ordered": "this desc nulls_first",
            "GroupConcat": "this separator",
            "Extract": "this expression",
            "Substring": "this start length",
            "Trim": "this expression position",
            "StrPosition": "this substr position",
            "Overlay": "this expression from_ for_",
            "CastToStrType": "this to",
            "CurrentDate": "this",
            "CurrentTime": "this",
            "CurrentTimestamp": "this",
            "Localtime": "this",
            "Localtimestamp": "this",
            "Window": "this partition_by order spec alias over first",
            "WindowSpec": "kind start start_side end end_side exclude",
            # queries
            "Select": f"{_QUERY} expressions distinct from_ locks",
            "Lock": "update key wait expressions",  # of PostgreSQL's queries inside of a write
            "Union": f"{_QUERY} this expression distinct",
            "Intersect": f"{_QUERY} this expression distinct",
            "Except": f"{_QUERY} this expression distinct",
            "Subquery": f"{_QUERY} this alias",
            "Values": "expressions alias order limit offset",
            "With": "expressions recursive",
            "CTE": "this alias materialized",
            "From": "this",
            "Join": "this on side kind using method",
            "Table": "this alias db joins laterals ordinality only partition",
            "TableAlias": "this columns",
            "Lateral": "this alias ordinality",
            "Unnest": "expressions alias offset",
            "Where": "this",
            "Group": "expressions grouping_sets cube rollup",
            "GroupingSets": "expressions",
            "Cube": "expressions",
            "Rollup": "expressions",
            "Having": "this",
            "Limit": "this expression offset",
            "Offset": "this expression",
            "Fetch": "direction count limit_options",
            "LimitOptions": "rows with_ties",
            # writes
            "Insert": "with_ this expression conflict returning alternative ignore default",
            "Update": "with_ this expressions from_ where returning order limit",
            "Delete": "with_ this using where returning order limit tables",
            "Merge": "with_ this using on whens using_cond",
            "Whens": "expressions",
            "When": "matched source condition then",
            "OnConflict": "duplicate expressions action conflict_keys index_predicate constraint where",
            "Returning": "expressions",
            "Schema": "this expressions",
            # definitions
            "TruncateTable": "expressions identity option",
            "Drop": "kind tables exists cascade restrict cluster",
            "Create": "this kind expression exists replace unique properties",
            "Alter": "this kind exists actions options not_valid",
            "Comment": "this kind expression",
            "OnProperty": "this",
            "ColumnDef": "this kind constraints exists position",
            "ColumnPosition": "this position",
            "ColumnPrefix": "this expression",
            "ColumnConstraint": "this kind",
            "Constraint": "this expressions",
            "AddConstraint": "expressions",
            "NotNullColumnConstraint": "allow_null",
            "PrimaryKeyColumnConstraint": "desc include",
            "UniqueColumnConstraint": "this nulls include",
            "CheckColumnConstraint": "this",
            "DefaultColumnConstraint": "this",
            "CollateColumnConstraint": "this",
            "CharacterSetColumnConstraint": "this",
            "CommentColumnConstraint": "this",
            "OnUpdateColumnConstraint": "this",
            "AutoIncrementColumnConstraint": "",
            "GeneratedAsIdentityColumnConstraint": "this",
            "ComputedColumnConstraint": "this persisted",
            "IndexColumnConstraint": "this expressions kind",
            "PrimaryKey": "this expressions include",
            "ForeignKey": "expressions reference delete update",
            "Reference": "this expressions options",
            "Index": "this table unique params",
            "Opclass": "this expression",
            "IndexParameters": "using columns where include",
            "AlterColumn": "this dtype default drop using allow_null",
            "RenameColumn": "this to exists",
            "AlterRename": "this",
            "ModifyColumn": "this rename_from",
            "Properties": "expressions",
            "EngineProperty": "this",
            "CharacterSetProperty": "this default",
            "CollateProperty": "this default",
            "SchemaCommentProperty": "this",
            "AutoIncrementProperty": "this",
            "StrictProperty": "",
            "MaterializedProperty": "",
            "LikeProperty": "this",
            "Partition": "expressions",
        }.items()
    },
}

UNITS: frozenset[str] = names("""
    MICROSECOND MICROSECONDS MILLISECOND MILLISECONDS SECOND SECONDS MINUTE MINUTES HOUR HOURS DAY DAYS WEEK WEEKS
    MONTH MONTHS QUARTER QUARTERS YEAR YEARS DECADE CENTURY MILLENNIUM DOW DOY ISODOW ISOYEAR EPOCH JULIAN TIMEZONE
    TIMEZONE_HOUR TIMEZONE_MINUTE SECOND_MICROSECOND MINUTE_MICROSECOND MINUTE_SECOND HOUR_MICROSECOND HOUR_SECOND
    HOUR_MINUTE DAY_MICROSECOND DAY_SECOND DAY_MINUTE DAY_HOUR YEAR_MONTH
""")

# Every bare word that a node may hold as text or as a Var, in capitals.
WORDS: frozenset[str] = (
    UNITS
    | names(
        """
    LEFT RIGHT FULL INNER OUTER CROSS NATURAL ROWS RANGE GROUPS UNBOUNDED PRECEDING FOLLOWING OVER
    BOTH LEADING TRAILING TABLE VIEW INDEX COLUMN CONSTRAINT CASCADE RESTRICT REPLACE IGNORE ABORT FAIL ROLLBACK
    DEFAULT UPDATE NOTHING RESTART CONTINUE FIRST LAST NEXT AFTER BTREE HASH GIN GIST BRIN SPGIST INNODB ARIA MYISAM
    UTF8 UTF8MB3 UTF8MB4 LATIN1 ASCII BINARY _UTF8MB4 _UTF8 _BINARY NOCASE RTRIM KEY UNIQUE PRIMARY FULLTEXT
    FOREIGN
"""
    )
    | frozenset(
        [
            "CURRENT ROW",
            "DO UPDATE",
            "DO NOTHING",
            "DELETE",
            "FOREIGN KEY",
            "PRIMARY KEY",
            "NO ACTION",
            "SET NULL",
            "SET DEFAULT",
            "IN BOOLEAN MODE",
            "IN NATURAL LANGUAGE MODE",
            "WITH QUERY EXPANSION",
            "NO OTHERS",
            "CURRENT_TIMESTAMP",
            *(
                f"ON {event} {action}"
                for event in ("DELETE", "UPDATE")
                for action in ("CASCADE", "RESTRICT", "NO ACTION", "SET NULL", "SET DEFAULT")
            ),
        ]
    )
)


def plain(node: exp.Expr) -> None:
    """Column names are told apart by no engine by their case unless they are quoted: write them in one way."""
    if isinstance(node, exp.Identifier) and not node.args.get("quoted"):
        node.set("this", lower(str(node.this)))
