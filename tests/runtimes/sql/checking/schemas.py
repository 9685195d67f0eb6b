"""One small shop in each dialect, as the engines describe it."""

from __future__ import annotations

from runtimes.sql.contract import Column, Dialect, ForeignKey, Schema, Table

_KINDS = ("int", "text", "number", "time", "json")
_TYPES = {
    Dialect.POSTGRESQL: dict(zip(_KINDS, ("integer", "text", "numeric(10,2)", "timestamptz", "jsonb"), strict=True)),
    Dialect.MARIADB: dict(
        zip(_KINDS, ("int(11)", "varchar(200)", "decimal(10,2)", "datetime", "longtext"), strict=True)
    ),
    Dialect.SQLITE: dict(zip(_KINDS, ("INTEGER", "TEXT", "NUMERIC", "TEXT", "TEXT"), strict=True)),
}


def shop(dialect: Dialect) -> Schema:
    """users <- orders -> (nothing), archive, and a view; PostgreSQL has another schema besides, and an enum."""
    kind = _TYPES[dialect]

    def table(name: str, columns: dict[str, str], **more: object) -> Table:
        return Table(
            name=name,
            columns=tuple(
                Column(name=column, type=kind.get(spelled, spelled), nullable=column != "id")
                for column, spelled in columns.items()
            ),
            key=("id",),
            **more,  # type: ignore[arg-type]
        )

    status = "order_status" if dialect is Dialect.POSTGRESQL else "text"
    tables = [
        table("users", {"id": "int", "name": "text", "email": "text", "born": "time"}),
        table(
            "orders",
            {"id": "int", "user_id": "int", "status": status, "total": "number", "placed": "time", "extra": "json"},
            foreign_keys=(
                ForeignKey(
                    name="orders_user",
                    columns=("user_id",),
                    parent="users",
                    parent_columns=("id",),
                    on_delete="CASCADE",
                ),
            ),
            facts={"indexes": ["orders_status"]},
        ),
        table("archive", {"id": "int", "status": "text"}),
        Table(name="v", kind="view", columns=(Column(name="id", type=kind["int"]),)),
    ]
    if dialect is Dialect.POSTGRESQL:
        tables.append(table("stock.items", {"id": "int", "Label": "text"}))
    return Schema(dialect=dialect, version="1", tables={each.name: each for each in tables}, hash="h")


_USERS = (
    "INSERT INTO users (id, name, email, born) VALUES (1, 'Ann', 'a@example.org', '1990-01-01'), (2, 'Bob', NULL, NULL)"
)
_ORDERS = """INSERT INTO orders (id, user_id, status, total, placed, extra) VALUES
    (1, 1, 'new', 3.50, '2024-01-01 10:00:00', '{"a": "x", "a.b": [1]}'),
    (2, 1, 'paid', 20, '2024-02-01 10:00:00', '{"a": 2}'),
    (3, 2, 'new', NULL, NULL, NULL), (4, NULL, 'old', 101, '2023-05-05 00:00:00', '{}')"""
_ARCHIVE = "INSERT INTO archive (id, status) VALUES (20, 'x'), (9, NULL)"

MADE = {
    Dialect.POSTGRESQL: (
        "CREATE TYPE order_status AS ENUM ('new', 'paid', 'old', 'x')",
        "CREATE TABLE users (id integer PRIMARY KEY, name text, email text, born timestamptz)",
        "CREATE TABLE orders (id integer PRIMARY KEY, user_id integer, status order_status, total numeric(10,2), "
        "placed timestamptz, extra jsonb, "
        "CONSTRAINT orders_user FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE)",
        "CREATE INDEX orders_status ON orders (status)",
        "CREATE TABLE archive (id integer PRIMARY KEY, status text)",
        "CREATE VIEW v AS SELECT id FROM orders",
        "CREATE SCHEMA stock",
        'CREATE TABLE stock.items (id integer PRIMARY KEY, "Label" text)',
        *(_USERS, _ORDERS, _ARCHIVE),
    ),
    Dialect.MARIADB: (
        "CREATE TABLE users (id int PRIMARY KEY, name varchar(200), email varchar(200), born datetime)",
        "CREATE TABLE orders (id int PRIMARY KEY, user_id int, status varchar(200), total decimal(10,2), "
        "placed datetime, extra longtext, "
        "CONSTRAINT orders_user FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE)",
        "CREATE INDEX orders_status ON orders (status)",
        "CREATE TABLE archive (id int PRIMARY KEY, status varchar(200))",
        "CREATE VIEW v AS SELECT id FROM orders",
        *(_USERS, _ORDERS, _ARCHIVE),
    ),
    Dialect.SQLITE: (
        "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, email TEXT, born TEXT)",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users (id) ON DELETE CASCADE, "
        "status TEXT, total NUMERIC, placed TEXT, extra TEXT)",
        "CREATE INDEX orders_status ON orders (status)",
        "CREATE TABLE archive (id INTEGER PRIMARY KEY, status TEXT)",
        "CREATE VIEW v AS SELECT id FROM orders",
        *(_USERS, _ORDERS, _ARCHIVE),
    ),
}  # what makes that shop, and a few rows
