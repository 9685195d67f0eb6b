"""A daemon for each file of these tests, and a shop's database in SQLite, which needs no server."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.services.mariadb import MariaDb, find_server
from tests.support.daemon import Daemon
from tests.support.entries import Client

SHOP = (
    "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, secret TEXT)",
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, total INTEGER,"
    " customer INTEGER REFERENCES customers (id) ON DELETE CASCADE)",
    "INSERT INTO customers VALUES (1, 'one', 'violet'), (2, 'two', 'amber'), (3, 'three', 'jade')",
    "INSERT INTO orders VALUES (1, 'open', 5, 1), (2, 'open', 7, 1), (3, 'paid', 9, 2), (4, 'paid', 11, 3)",
)


@dataclass
class Shop:
    """One entry and its file. What assertions stand on is read past GoEx."""

    client: Client
    name: str
    file: Path

    def look(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.file)) as connection:
            return connection.execute(query).fetchall()

    def change(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.file)) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    def orders(self) -> list[tuple[Any, ...]]:
        return self.look("SELECT id, status, total, customer FROM orders ORDER BY id")

    def sql(self, statements: str, **more: Any) -> Any:
        return self.client.sql(self.name, statements, **more)

    def run(self, statements: str, **more: Any) -> Any:
        return self.client.run(self.name, statements, **more)


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon() as running:
        yield running


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Client:
    return Client(daemon)


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDb]:
    if find_server() is None:
        pytest.skip("no mariadbd here")
    with MariaDb() as server:
        yield server


@pytest.fixture
def shop(client: Client, tmp_path: Path) -> Iterator[Shop]:
    """An entry of its own for each test."""
    name = f"shop{secrets.token_hex(3)}"
    made = Shop(client, name, tmp_path / "shop.db")
    made.change(*SHOP)
    if os.geteuid() == 0:
        made.file.chmod(0o600)
    client.add(name, f"sqlite:///{made.file}")
    yield made
