"""A real MariaDB for tests: in a temporary folder, on a Unix socket and a loopback port with TLS, on its own.

Rules: it runs as an unprivileged user (it refuses root), reads no configuration of the machine's, and ends with the
process that started it. Its system tables are a copy of ones that are made once a run. `kill` is -9, and what it had
committed is there after `start`. Its helpers speak with the server directly, never through GoEx: they are what
assertions stand on.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import pymysql
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from pymysql.constants import CLIENT, CR

from tests.support.freezing import freeze
from tests.support.shared import RUN, once

_NOBODY = 65534

# Ends the server when standard input closes, so also when whoever started it was killed.
_WATCHED = 'exec 3<&0; "$@" 3<&- </dev/null & pid=$!; (read -r _ <&3; kill -9 $pid) & wait $pid'

# What makes a start slow, and what a test never needs. Only durability is a choice (`fsync`).
_OPTIONS = (
    "--no-defaults",
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--innodb-buffer-pool-size=128M",
    "--innodb-log-file-size=96M",
    "--innodb-undo-tablespaces=0",
    "--key-buffer-size=1M",
    "--max-connections=60",
    "--skip-log-bin",
)


class MariaDbError(RuntimeError):
    """The server didn't start; the text holds the end of its log."""


def find_server() -> str | None:
    """`mariadbd`, or None where it isn't installed."""
    return shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@dataclass
class MariaDb:
    """One server. A context manager: made and started on entry, gone (folder and all) on exit.

    `fsync` False: what it commits needn't survive the machine, only its own death. `options` are further ones of
    `mariadbd`, such as "--log-bin".
    """

    fsync: bool = False
    options: tuple[str, ...] = ()
    seconds: float = 300.0  # how long a start may take
    port: int = 0
    folder: Path = field(default_factory=Path)
    password: str = field(default_factory=lambda: secrets.token_hex(12), repr=False)  # of its root
    ca_pem: str = field(default="", repr=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def __enter__(self) -> MariaDb:
        self.make()
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # ---- its life

    def make(self) -> None:
        """Make its folder and its system tables."""
        quick = "/dev/shm" if not self.fsync and os.access("/dev/shm", os.W_OK) else None
        self.folder = Path(tempfile.mkdtemp(prefix="goex-mariadb-", dir=quick))
        self.port = _free_port()
        (self.folder / "tmp").mkdir()
        self.ca_pem = _write_certificates(self.folder)
        if RUN in os.environ:
            shutil.copytree(once("mariadb", _install) / "data", self.folder / "data")
        else:
            _install(self.folder)
        if os.geteuid() == 0:
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, _NOBODY, _NOBODY)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        program = find_server()
        if program is None:
            raise MariaDbError("mariadbd isn't there")
        self._pid_file.unlink(missing_ok=True)
        Path(self.socket).unlink(missing_ok=True)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    "/bin/sh",
                    "-c",
                    _WATCHED,
                    "watched",
                    program,
                    *_OPTIONS,
                    f"--innodb-flush-log-at-trx-commit={1 if self.fsync else 2}",
                    f"--datadir={self.folder}/data",
                    f"--tmpdir={self.folder}/tmp",
                    f"--socket={self.socket}",
                    f"--pid-file={self._pid_file}",
                    f"--port={self.port}",
                    f"--ssl-ca={self.folder}/ca.pem",
                    f"--ssl-cert={self.folder}/server.pem",
                    f"--ssl-key={self.folder}/server.key",
                    *self.options,
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **_as_nobody(),
            )
        deadline = time.monotonic() + self.seconds
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise MariaDbError((self.folder / "log").read_text(errors="replace")[-3000:])
            time.sleep(0.02)

    def stop(self) -> None:
        """Let it end in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill -9."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Kill -9, and start again on what was on the disk."""
        self.kill()
        self.start()

    def freeze(self) -> None:
        """It neither answers nor ends, until `thaw`."""
        freeze(self.pid)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """End it and remove its folder."""
        with contextlib.suppress(ProcessLookupError):
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        return int(self._pid_file.read_text())

    @property
    def socket(self) -> str:
        return str(self.folder / "s")

    @property
    def _pid_file(self) -> Path:
        return self.folder / "pid"

    def _answers(self) -> bool:
        for password in (self.password, ""):
            try:
                with self.connect(password=password) as connection, connection.cursor() as cursor:
                    if password == "":
                        cursor.execute("ALTER USER root@localhost IDENTIFIED BY %s", (self.password,))
                    return True
            except pymysql.err.OperationalError as error:
                if error.args[0] != 1045:  # the first start: its root has no password yet
                    return False
        return False

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        try:
            os.kill(self.pid, number)
        except (OSError, ValueError):
            process.stdin.close()  # it hadn't come up: its watch kills it
        process.wait(timeout=self.seconds)
        with contextlib.suppress(OSError):
            process.stdin.close()  # ends the watch

    # ---- speaking with it, as its root

    def connect(self, database: str | None = None, *, password: str | None = None, **more: Any) -> Any:
        """A connection of PyMySQL's, which commits each statement."""
        options: dict[str, Any] = {
            "user": "root",
            "autocommit": True,
            "charset": "utf8mb4",
            "ssl_disabled": True,
            **more,
        }
        return pymysql.connect(
            unix_socket=self.socket,
            password=self.password if password is None else password,
            database=database,
            client_flag=CLIENT.MULTI_STATEMENTS,
            **options,
        )

    def run(self, text: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run statements as root, each committed; the rows of the last one."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(text)
            rows = list(cursor.fetchall())
            while cursor.nextset():
                rows = list(cursor.fetchall())
            return rows

    @contextlib.contextmanager
    def database(self, name: str = "", *, user: str = "", password: str = "") -> Iterator[str]:
        """A database of its own, dropped at the end; `user` is made with every right in it and none elsewhere."""
        name = name or f"t_{secrets.token_hex(4)}"
        self.run(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
        try:
            if user:
                self.run(f"CREATE OR REPLACE USER `{user}`@`%` IDENTIFIED BY '{password}'")
                self.run(f"GRANT ALL PRIVILEGES ON `{name}`.* TO `{user}`@`%`")
            yield name
        finally:
            with contextlib.suppress(pymysql.err.MySQLError, OSError, MariaDbError):
                self._drop(name)

    def _drop(self, name: str) -> None:
        """Drop a database, one table after the other: DROP DATABASE locks all of them together, and now and then waits
        for good for the server's purge, which took them, gave them up and took them again without an end (seen with
        10.11.19). A server that hangs all the same is killed and started again, with a warning."""
        try:
            self._drop_at_once(name)
        except pymysql.err.OperationalError as error:
            if error.args[0] != CR.CR_SERVER_LOST:
                raise
            warnings.warn(f"The server didn't drop {name} in a minute, and is started again: {error}", stacklevel=1)
            self.restart()
            self._drop_at_once(name)

    def _drop_at_once(self, name: str) -> None:
        kinds = {"VIEW": "VIEW", "SEQUENCE": "SEQUENCE"}
        with self.connect(read_timeout=60) as connection, connection.cursor() as cursor:
            cursor.execute("SET lock_wait_timeout = 5, foreign_key_checks = 0")
            cursor.execute(
                "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = %s", (name,)
            )
            for table, kind in cursor.fetchall():
                cursor.execute(f"DROP {kinds.get(kind, 'TABLE')} IF EXISTS `{name}`.`{table}`")
            cursor.execute(f"DROP DATABASE IF EXISTS `{name}`")


def _install(folder: Path) -> None:
    """Make the system tables of a server that hasn't run yet, below `folder`."""
    program = shutil.which("mariadb-install-db")
    if program is None:
        raise MariaDbError("mariadb-install-db isn't there")
    with tempfile.TemporaryDirectory(prefix="goex-mariadb-") as place:
        for each in (Path(place), Path(place, "data"), Path(place, "tmp")):
            each.mkdir(exist_ok=True)
            if os.geteuid() == 0:
                os.chown(each, _NOBODY, _NOBODY)
        done = subprocess.run(
            [
                program,
                "--no-defaults",
                f"--datadir={place}/data",
                f"--tmpdir={place}/tmp",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--innodb-log-file-size=96M",
                "--innodb-flush-log-at-trx-commit=0",
            ],
            capture_output=True,
            check=False,
            cwd=place,
            **_as_nobody(),
        )
        if done.returncode != 0:
            raise MariaDbError((done.stdout + done.stderr).decode(errors="replace")[-3000:])
        shutil.copytree(f"{place}/data", folder / "data")


def _as_nobody() -> dict[str, Any]:
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _write_certificates(folder: Path) -> str:
    """A test CA, and a certificate of the server for 127.0.0.1 and localhost."""
    now = datetime.now(UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "GoEx test CA")])
    ca = (
        x509.CertificateBuilder()
        .subject_name(ca_name)
        .issuer_name(ca_name)
        .public_key(ca_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .add_extension(_usage(signs=True), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    server = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]))
        .issuer_name(ca_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.DNSName("localhost"), x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))]
            ),
            critical=False,
        )
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_usage(signs=False), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(ca.public_bytes(pem))
    (folder / "server.pem").write_bytes(server.public_bytes(pem))
    (folder / "server.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return ca.public_bytes(pem).decode()


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
