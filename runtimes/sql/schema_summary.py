"""A schema as a model may know it: names, types and keys. No row, no default (it may be somebody's data), no place."""

from __future__ import annotations

from policies.jsonvalue import JsonObject, JsonValue
from runtimes.sql.contract import Schema, Table

MAX_TYPE = 100  # characters; an enumeration's values are in it


def tables(schema: Schema) -> tuple[JsonObject, ...]:
    """One JSON object a table or view."""
    return tuple(_table(table) for table in schema.tables.values() if table.kind != "other")


def _table(table: Table) -> JsonObject:
    described: dict[str, JsonValue] = {
        "table": table.name,
        "columns": {column.name: _type(column.type, column.nullable) for column in table.columns},
    }
    if table.kind == "view":
        described["view"] = True
    if table.key:
        described["key"] = list(table.key)
    if table.foreign_keys:
        described["references"] = [
            f"({', '.join(key.columns)}) -> {key.parent} ({', '.join(key.parent_columns)})"
            for key in table.foreign_keys
        ]
    return described


def _type(type_: str, nullable: bool) -> str:
    return (type_[:MAX_TYPE] or "any") + ("" if nullable else ", never NULL")
