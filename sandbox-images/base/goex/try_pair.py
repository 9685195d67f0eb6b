"""Tries a pair of SQL statements on made-up rows: `python3 -I try_pair.py job.json`.

For each seed it makes an empty database, puts the rows in, and writes down what all tables hold: before, after the
action, and after the undo. It compares nothing and decides nothing: the daemon does, from what this prints. SQLite is
in the standard library; the images `postgresql` and `mariadb` have a server and its driver, on a socket in /tmp.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time

_WAIT = 30.0  # seconds for a server to answer


class SQLite:
    def __init__(self):
        import sqlite3

        self.errors, self.mark = (sqlite3.Error, sqlite3.Warning), "?"
        self.connection = None

    def fresh(self, number):
        import sqlite3

        if self.connection is not None:
            self.connection.close()
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.execute("PRAGMA foreign_keys = ON")

    def run(self, sql, values=()):
        return self.connection.execute(sql, values).fetchall()

    def plain(self, sql):
        return self.connection.execute(sql).fetchall()


class PostgreSQL:
    def __init__(self):
        import psycopg2

        shutil.copytree("/goex/data/db", "/tmp/db")
        os.chmod("/tmp/db", 0o700)
        options = {
            "listen_addresses": "",
            "unix_socket_directories": "/tmp",
            "fsync": "off",
            "full_page_writes": "off",
            "shared_buffers": "16MB",
            "dynamic_shared_memory_type": "mmap",
            "max_connections": "10",
            "autovacuum": "off",
            "synchronous_commit": "off",
            "wal_level": "minimal",
            "max_wal_senders": "0",
            "jit": "off",
            "max_worker_processes": "2",
            "max_parallel_workers": "0",
            "statement_timeout": "10s",
        }
        command = ["/usr/lib/postgresql/15/bin/postgres", "-D", "/tmp/db"]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        self.server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=2)
        self.errors, self.mark = (psycopg2.Error, ValueError), "%s"
        self.driver, self.connection = psycopg2, None
        self.first = until_there(self.server, lambda: self.connect("postgres"))

    def connect(self, database):
        connection = self.driver.connect(host="/tmp", dbname=database, user="goex")
        connection.autocommit = True
        return connection

    def fresh(self, number):
        if self.connection is not None:
            self.connection.close()
        with self.first.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE seed{number}")
        self.connection = self.connect(f"seed{number}")

    def run(self, sql, values=()):
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    def plain(self, sql):
        with self.connection.cursor() as cursor:
            cursor.execute(sql)  # without values: % is only %
            return cursor.fetchall() if cursor.description else []


class MariaDB:
    def __init__(self):
        import pymysql

        shutil.copytree("/goex/data/db", "/tmp/db")
        command = [
            "/usr/sbin/mariadbd",
            "--no-defaults",
            "--datadir=/tmp/db",
            "--socket=/tmp/db.sock",
            "--skip-networking",
            "--skip-grant-tables",
            "--pid-file=/tmp/db.pid",
            "--innodb-buffer-pool-size=16M",
            "--skip-log-bin",
            "--innodb-log-file-size=4M",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-flush-method=fsync",
            "--performance-schema=off",
            "--max-connections=10",
            "--key-buffer-size=1M",
            "--max-statement-time=10",
            "--aria-pagecache-buffer-size=8M",
            "--local-infile=0",
            "--secure-file-priv=/goex/gateway",
            "--tmpdir=/tmp",
            "--innodb-use-native-aio=0",
            "--character-set-server=utf8mb4",
        ]
        self.server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=2)
        self.errors, self.mark = (pymysql.Error, ValueError), "%s"
        self.driver, self.connection = pymysql, None
        self.first = until_there(self.server, lambda: self.connect(None))

    def connect(self, database):
        return self.driver.connect(
            unix_socket="/tmp/db.sock", user="root", database=database, charset="utf8mb4", autocommit=True
        )

    def fresh(self, number):
        if self.connection is not None:
            self.connection.close()
        with self.first.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE seed{number} CHARACTER SET utf8mb4")
        self.connection = self.connect(f"seed{number}")
        self.plain("SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO'")

    def run(self, sql, values=()):
        with self.connection.cursor() as cursor:
            cursor.execute(sql, values or None)
            return cursor.fetchall() if cursor.description else []

    def plain(self, sql):
        return self.run(sql)


ENGINES = {"sqlite": SQLite, "postgresql": PostgreSQL, "mariadb": MariaDB}


def until_there(server, connect):
    end = time.monotonic() + _WAIT
    while True:
        try:
            return connect()
        except Exception:
            if time.monotonic() > end or server.poll() is not None:
                raise
            time.sleep(0.05)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    engine = ENGINES[job["engine"]]()
    for number, seed in enumerate(job["seeds"]):
        print(json.dumps(one(engine, job, number, seed)), flush=True)
    os._exit(0)  # a server that still runs ends with the container


def one(engine, job, number, seed):
    said = {}
    try:
        engine.fresh(number)
        for statement in job["definitions"]:
            engine.plain(statement)
    except engine.errors as error:
        return {"failed": "definitions", "why": str(error)[:500]}
    for sql, values in seed:
        with contextlib.suppress(*engine.errors):  # a row that the constraints don't take: there are others
            engine.run(sql, tuple(values))
    try:
        said["before"] = state(engine, job)
        for phase, name in (("action", "after"), ("undo", "undone")):
            why = transaction(engine, job[phase])
            if why is not None:
                said[phase + "_refused"] = why
            said[name] = state(engine, job)
    except engine.errors as error:
        return {"failed": "reading", "why": str(error)[:500]}
    return said


def transaction(engine, statements):
    """None, or why the database refused it."""
    engine.plain("BEGIN")
    try:
        for statement in statements:
            engine.plain(statement)
        engine.plain("COMMIT")
    except engine.errors as error:
        with contextlib.suppress(*engine.errors):
            engine.plain("ROLLBACK")
        return str(error)[:500]
    return None


def state(engine, job):
    return {table: [[text(value) for value in row] for row in engine.plain(sql)] for table, sql in job["look"].items()}


def text(value):
    """A value as text that says its type too; None for NULL."""
    if value is None:
        return None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "bytes:" + bytes(value).hex()
    return type(value).__name__ + ":" + str(value)


if __name__ == "__main__":
    main()
