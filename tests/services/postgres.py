"""A real PostgreSQL server for tests: in a temporary folder, under an unprivileged user, on a Unix socket and loopback.

Rules: it speaks TLS (a test authority signed its certificate for localhost) and plain, wants a password everywhere,
and ends with the process that started it, folder and all. `kill` takes all its processes away with -9, as a power cut
would of a machine whose disk still gets everything written; `start` recovers. With `durable` it waits for the disk.
Its files are a copy of a server's that is made once a run.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from psycopg import sql

from runtimes.sql.contract import Dialect, Place
from tests.support.shared import RUN, once
from vault.secret import Secret

# Whoever started it is gone: so is the server, and what it kept.
_GUARD = """trap '' INT QUIT TERM
read -r _
pid=$(head -n 1 "$0/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" && sleep 0.5
rm -rf "$0"
"""

_CONFIG = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '{folder}'
max_connections = 60
max_prepared_transactions = 50
shared_buffers = 64MB
fsync = {fsync}
full_page_writes = {fsync}
ssl = on
ssl_cert_file = '{folder}/server.pem'
ssl_key_file = '{folder}/server.key'
autovacuum = off
max_wal_senders = 0
wal_level = minimal
timezone = UTC
log_timezone = UTC
"""

_SWEEP = "VACUUM (TRUNCATE false) pg_attribute, pg_class, pg_depend, pg_index, pg_statistic, pg_type"


class PostgresError(RuntimeError):
    """The server didn't start; the text holds the end of its log."""


def find_binaries() -> Path | None:
    """The folder of `postgres` and `initdb` (Debian keeps them off PATH), or None where it isn't installed."""
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda each: float(each.parts[-3]))
    if versions:
        return versions[-1].parent
    found = shutil.which("postgres")
    return Path(found).parent if found else None


@dataclass(frozen=True)
class Made:
    """A database of a test's own and the role that owns it, which may nothing else."""

    server: Postgres
    database: str
    user: str
    password: str = field(repr=False)

    @property
    def secret(self) -> Secret:
        return Secret(self.password)

    def place(self, *, tcp: bool = False, tls: bool = False) -> Place:
        """Where it is, for GoEx: by the Unix socket, or by the port, with or without TLS."""
        where: dict[str, Any] = {"host": "localhost", "port": self.server.port}
        if not (tcp or tls):
            where = {"socket": str(self.server.folder), "port": self.server.port}
        return Place(
            dialect=Dialect.POSTGRESQL,
            database=self.database,
            user=self.user,
            tls="verify" if tls else "none",
            ca_pem=self.server.ca_pem if tls else "",
            **where,
        )

    @property
    def url(self) -> str:
        """As a person would name it (with the password), by the port."""
        return f"postgresql://{self.user}:{self.password}@127.0.0.1:{self.server.port}/{self.database}"

    def connect(self, **more: Any) -> psycopg.Connection[Any]:
        """A connection of the owner's own, past GoEx: what assertions stand on. Each statement is committed."""
        settings = {"autocommit": True, **more}
        return psycopg.connect(
            host=str(self.server.folder),
            port=self.server.port,
            dbname=self.database,
            user=self.user,
            password=self.password,
            options="-c lock_timeout=5s -c statement_timeout=60s",
            **settings,
        )

    def admin(self, **more: Any) -> psycopg.Connection[Any]:
        """The superuser in this database."""
        return self.server.connect(self.database, **more)

    def observer(self) -> psycopg.Connection[Any]:
        """The superuser in this database, on a connection that is kept: a new one reads much of the catalog first."""
        kept = self.server._kept
        if kept is None or kept.closed or kept.info.dbname != self.database:
            if kept is not None:
                kept.close()
            kept = self.server._kept = self.admin()
        return kept

    def empty(self) -> None:
        """Drop what is in `public`. What that leaves in the server's own tables is swept, since no autovacuum does it:
        a hundred tests later they would be forty times as large, and each look at them as slow."""
        admin = self.observer()
        admin.execute(f"DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public AUTHORIZATION {self.user}")
        admin.execute(_SWEEP)


@dataclass
class Postgres:
    """One server. A context manager: started on entry, gone (folder and all) on exit."""

    durable: bool = False
    options: dict[str, str] = field(default_factory=dict)  # more of postgresql.conf
    seconds: float = 300.0  # how long a start may take
    port: int = 0
    folder: Path = field(default_factory=Path)
    ca_pem: str = field(default="", repr=False)
    password: str = field(default="", repr=False)  # of the superuser
    _guard: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _kept: psycopg.Connection[Any] | None = field(default=None, repr=False)  # of `Made.observer`
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1), repr=False)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> str:
        """What the server wrote."""
        return (self.folder / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start it and wait until it answers; what it held before it was stopped or killed is there again."""
        if self._guard is None:
            self._make()
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(_binaries() / "postgres"), "-D", str(self._data)],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C at the terminal is for the tests
                **_unprivileged(),
            )
        until = time.monotonic() + self.seconds
        while time.monotonic() < until and self._process.poll() is None:
            with suppress(psycopg.OperationalError):
                self.connect().close()
                return
            time.sleep(0.05)
        raise PostgresError(self.log[-2000:])

    def stop(self) -> None:
        """Shut it down in order (its connections are cut)."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill -9: every process of it at once, as when the power goes."""
        if self._kept is not None:
            self._kept.close()
        if self._process is not None:
            self._process.kill()
        while there := _working_in(self._data):  # also one whose parent has gone, and one that was born meanwhile
            for process in there:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.01)
        if self._process is not None:
            self._process.wait()
        self._process = None

    def restart(self) -> None:
        """Stop in order, and start."""
        self.stop()
        self.start()

    def connect(self, database: str = "postgres", **more: Any) -> psycopg.Connection[Any]:
        """The superuser, through the Unix socket. Each statement is committed."""
        settings = {"autocommit": True, **more}
        return psycopg.connect(
            host=str(self.folder),
            port=self.port,
            dbname=database,
            user="postgres",
            password=self.password,
            connect_timeout=10,
            options="-c lock_timeout=5s -c statement_timeout=60s",  # a test that waits for ever says nothing
            **settings,
        )

    def make(self, *statements: str, role: str = "") -> Made:
        """A new database and its owner, who then runs `statements`; `role` adds attributes to the owner's role."""
        number = next(self._numbers)
        made = Made(self, f"db{number}", f"goex{number}", secrets.token_hex(8))
        with self.connect() as admin:
            admin.execute(f"CREATE ROLE {made.user} LOGIN {role} PASSWORD '{_kept(made.password)}'")
            admin.execute(f"CREATE DATABASE {made.database} OWNER {made.user}")
        if statements:
            with made.connect() as owner:
                for statement in statements:
                    owner.execute(sql.SQL(statement))  # type: ignore[arg-type]
        return made

    def __enter__(self) -> Postgres:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(signal.SIGQUIT)
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()
            with suppress(subprocess.TimeoutExpired):  # it goes on removing the folder
                self._guard.wait(3)
            self._guard = None

    def _end(self, how: signal.Signals) -> None:
        if self._kept is not None:
            self._kept.close()
        if self._process is not None:
            if self._process.poll() is None:
                self._process.send_signal(how)
                self._process.wait()
            self._process = None

    def _make(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="goex-pg-"))
        self._guard = subprocess.Popen(
            ["sh", "-c", _GUARD, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.port = _free_port()
        self.ca_pem = _certificates(self.folder)
        if RUN in os.environ:
            shutil.copytree(once("postgres", _install), self.folder, dirs_exist_ok=True)
        else:
            _install(self.folder)
        self.folder.chmod(0o711)
        self.password = (self.folder / "password").read_text()
        _give(self.folder)
        config = _CONFIG.format(port=self.port, folder=self.folder, fsync="on" if self.durable else "off")
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(config + "".join(f"{name} = '{value}'\n" for name, value in self.options.items()))


def _binaries() -> Path:
    found = find_binaries()
    if found is None:
        raise PostgresError("PostgreSQL isn't installed (Debian: apt-get install postgresql).")
    return found


def _install(folder: Path) -> None:
    """Write the files of a new server to `data`, and its superuser's password."""
    with tempfile.TemporaryDirectory(prefix="goex-pg-") as name:  # where an unprivileged user can work
        made = Path(name)
        (made / "password").write_text(secrets.token_hex(16))
        _give(made)
        initdb = subprocess.run(
            [
                str(_binaries() / "initdb"),
                *("-D", str(made / "data"), "-U", "postgres", "--pwfile", str(made / "password")),
                *("-A", "scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"),
            ],
            cwd=made,
            capture_output=True,
            **_unprivileged(),
        )
        if initdb.returncode != 0:
            raise PostgresError(initdb.stderr.decode(errors="replace"))
        shutil.copytree(made, folder, dirs_exist_ok=True)


def _give(folder: Path) -> None:
    """Make the server's user the owner of a folder and what is in it."""
    if user := _unprivileged():
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user["user"], user["group"])


def _unprivileged() -> dict[str, Any]:
    """For Popen: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    names = {each.pw_name: each for each in pwd.getpwall()}
    who = names.get("postgres") or names["nobody"]
    return {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}


def _kept(password: str) -> str:
    """What the server keeps of a password (RFC 5803), stretched once: each login costs both ends milliseconds else."""
    salt = secrets.token_bytes(16)
    stretched = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 1)
    client, server = (hmac.digest(stretched, name, "sha256") for name in (b"Client Key", b"Server Key"))
    text = [b64encode(each).decode() for each in (salt, hashlib.sha256(client).digest(), server)]
    return f"SCRAM-SHA-256$1:{text[0]}${text[1]}:{text[2]}"


def _free_port() -> int:
    with socket.socket() as trying:
        trying.bind(("127.0.0.1", 0))
        return int(trying.getsockname()[1])


def _working_in(folder: Path) -> list[int]:
    """The processes whose working folder it is."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            if link.readlink() == folder:
                found.append(int(link.parent.name))
    return found


def _certificates(folder: Path) -> str:
    """Write server.pem and server.key for localhost; returns the authority's certificate."""
    now = datetime.now(UTC)

    def certificate(name: str, key: ec.EllipticCurvePrivateKey, issuer: str, signer: ec.EllipticCurvePrivateKey) -> Any:
        root = name == issuer
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=root, path_length=None), critical=True)
        )
        if not root:
            names = [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    (folder / "server.pem").write_bytes(certificate("localhost", server, "GoEx test authority", authority))
    key = folder / "server.key"
    key.touch(mode=0o600)
    key.write_bytes(
        server.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    pem: bytes = certificate("GoEx test authority", authority, "GoEx test authority", authority)
    return pem.decode()
