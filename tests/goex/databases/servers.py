"""The same shop on each kind of server, added as a person adds it; looked at past GoEx."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pymysql

from tests.services.mariadb import MariaDb
from tests.services.postgres import Postgres
from tests.support.entries import Client

TABLES = (
    "CREATE TABLE customers (id integer PRIMARY KEY, name varchar(40) NOT NULL, secret varchar(40))",
    "CREATE TABLE orders (id integer PRIMARY KEY, status varchar(20), total integer, customer integer,"
    " FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE)",
    "INSERT INTO customers VALUES (1, 'one', 'violet'), (2, 'two', 'amber'), (3, 'three', 'jade')",
    "INSERT INTO orders VALUES (1, 'open', 5, 1), (2, 'open', 7, 1), (3, 'paid', 9, 2), (4, 'paid', 11, 3)",
)
ORDERS = "SELECT id, status, total, customer FROM orders ORDER BY id"


@dataclass
class Served:
    """One entry of a database on a server."""

    client: Client
    name: str
    url: str  # without the password
    password: str
    connect: Callable[[], Any]
    user: str

    def look(self, query: str = ORDERS) -> list[tuple[Any, ...]]:
        with closing(self.connect()) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(query)
            return [tuple(row) for row in cursor.fetchall()]

    def change(self, *statements: str) -> None:
        with closing(self.connect()) as connection, closing(connection.cursor()) as cursor:
            for statement in statements:
                cursor.execute(statement)

    def sql(self, statements: str, **more: Any) -> Any:
        return self.client.sql(self.name, statements, **more)

    def run(self, statements: str, **more: Any) -> Any:
        return self.client.run(self.name, statements, **more)

    def add(self, **more: Any) -> Any:
        return self.client.add(self.name, self.url, self.password.encode(), **more)


@contextmanager
def on_postgres(server: Postgres, client: Client) -> Iterator[Served]:
    made = server.make(*TABLES)
    url = f"postgresql://{made.user}@{quote(str(server.folder), safe='')}:{server.port}/{made.database}"
    yield Served(client, f"pg{secrets.token_hex(3)}", url, made.password, made.connect, made.user)


@contextmanager
def on_mariadb(server: MariaDb, client: Client) -> Iterator[Served]:
    user, password = f"u{secrets.token_hex(3)}", secrets.token_hex(12)
    with server.database(user=user, password=password) as name:

        def connect() -> Any:
            return pymysql.connect(
                unix_socket=server.socket, user=user, password=password, database=name, autocommit=True
            )

        made = Served(
            client, f"my{secrets.token_hex(3)}", f"mariadb://{user}@{quote(server.socket, safe='')}/{name}", password,
            connect, user,
        )  # fmt: skip
        made.change(*TABLES)
        yield made
