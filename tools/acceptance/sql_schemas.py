"""Schemas of published projects: installed from PyPI into .cache, made by their own migrations on the real server.

Nothing of them is committed: the first run installs and migrates, and keeps each as a dump in .cache/acceptance/sql.
"""

# ruff: noqa: E501 (lists, and programs that run elsewhere)

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runtimes.sql.contract import Dialect
from tests.services.mariadb import MariaDb
from tests.services.postgres import Postgres

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "acceptance"
_PYTHON = CACHE / "venv" / "bin" / "python"
_PACKAGES = (
    "Django==5.2.*", "psycopg[binary]", "pymysql", "wagtail", "django-oscar", "django-machina", "django-allauth",
    "django-oauth-toolkit", "django-celery-beat", "django-celery-results", "wiki", "django-filer", "django-q2",
    "django-ledger", "django-organizations", "django-activity-stream", "django-photologue", "django-newsletter",
    "django-reversion", "django-auditlog", "optuna", "Trac", "psycopg2-binary", "setuptools<80",
)  # fmt: skip
_BASE = ("django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "django.contrib.sites")
# name: Django applications beside the common ones
DJANGO: dict[str, tuple[str, ...]] = {
    "django": ("django.contrib.admin", "django.contrib.flatpages", "django.contrib.redirects"),
    "wagtail": ("wagtail.contrib.forms", "wagtail.contrib.redirects", "wagtail.embeds", "wagtail.sites", "wagtail.users",
                "wagtail.documents", "wagtail.images", "wagtail.search", "wagtail.admin", "wagtail", "taggit",
                "modelcluster"),
    "machina": ("mptt", "haystack", "widget_tweaks", "machina", "machina.apps.forum", "machina.apps.forum_conversation",
                "machina.apps.forum_conversation.forum_attachments", "machina.apps.forum_conversation.forum_polls",
                "machina.apps.forum_member", "machina.apps.forum_permission", "machina.apps.forum_tracking"),
    "allauth": ("allauth", "allauth.account", "allauth.socialaccount", "allauth.mfa", "allauth.usersessions"),
    "oauth_toolkit": ("oauth2_provider",),
    "celery": ("django_celery_beat", "django_celery_results"),
    "wiki": ("django.contrib.humanize", "django_nyt", "mptt", "sorl.thumbnail", "wiki", "wiki.plugins.attachments",
             "wiki.plugins.notifications", "wiki.plugins.images"),
    "filer": ("easy_thumbnails", "filer", "mptt"),
    "ledger": ("django_ledger", "django.contrib.admin"),
    "organizations": ("organizations", "actstream", "django_q"),
    "photologue": ("photologue", "sortedm2m", "sorl.thumbnail", "newsletter"),
    "audit": ("reversion", "auditlog"),
}  # fmt: skip
OTHERS = ("optuna", "trac")
NAMES = (*DJANGO, *OTHERS)
HELD_OUT = ("wagtail", "allauth", "oauth_toolkit", "wiki", "ledger", "photologue", "trac")

_SETTINGS = """
import json, os, sys
import pymysql; pymysql.version_info = (2, 2, 7, "final", 0); pymysql.install_as_MySQLdb()
from django.conf import settings
base = {base!r}; apps = {apps!r}
settings.configure(SECRET_KEY="x", SITE_ID=1, USE_TZ=True, DATABASES={{"default": json.loads(os.environ["ACCEPT_DB"])}},
    INSTALLED_APPS=[*base, "django.contrib.messages", "django.contrib.staticfiles",
                    *(one for one in apps if one not in base)],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", STATIC_URL="/s/", MEDIA_ROOT="/tmp", WAGTAIL_SITE_NAME="x",
    WAGTAILADMIN_BASE_URL="http://x", HAYSTACK_CONNECTIONS={{"default": {{"ENGINE":
    "haystack.backends.simple_backend.SimpleEngine"}}}}, SILENCED_SYSTEM_CHECKS=["*"], THUMBNAIL_ALIASES={{}},
    TEMPLATES=[{{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}}],
    AUTHENTICATION_BACKENDS=["django.contrib.auth.backends.ModelBackend"], MIDDLEWARE=["allauth.account.middleware.AccountMiddleware"] if "allauth" in apps else [],
    CACHES={{"default": {{"BACKEND": "django.core.cache.backends.dummy.DummyCache"}},
             "machina_attachments": {{"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}}})
import django; django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
"""
_OPTUNA = """
import os, json, pymysql; pymysql.install_as_MySQLdb()
import optuna, sqlalchemy
from optuna.storages._rdb import models
models.BaseModel.metadata.create_all(sqlalchemy.create_engine(os.environ["ACCEPT_URL"]))
"""
_TRAC = """
import os, sys, sqlalchemy
from trac import db_default
from trac.db import sqlite_backend, postgres_backend, mysql_backend
kind = os.environ["ACCEPT_KIND"]
import types
if kind == "mariadb":
    class Tables:
        def to_sql(self, table): return mysql_backend.MySQLConnector.to_sql(self, table)
    made = object.__new__(mysql_backend.MySQLConnector)
    made.to_sql.__func__
    out = [one for table in db_default.schema for one in mysql_backend.MySQLConnector.to_sql(made, table, True)]
elif kind == "postgresql":
    made = object.__new__(postgres_backend.PostgreSQLConnector)
    out = [one for table in db_default.schema for one in made.to_sql(table)]
else:
    made = object.__new__(sqlite_backend.SQLiteConnector)
    out = [one for table in db_default.schema for one in made.to_sql(table)]
engine = sqlalchemy.create_engine(os.environ["ACCEPT_URL"])
with engine.begin() as connection:
    for one in out:
        connection.exec_driver_sql(one.replace("%", "%%"))
"""


@dataclass(frozen=True)
class Source:
    """Where the migrations of one schema run."""

    settings: str  # DATABASES["default"] as JSON
    url: str
    dump: tuple[str, ...]
    env: dict[str, str]


# Without what a virtual table makes by itself when it is made.
_DUMP = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
own = [name for _, name, kind, *_ in db.execute("PRAGMA table_list") if kind == "shadow"]
for one in db.iterdump():
    if not one.startswith(tuple(start for name in own for start in (f"CREATE TABLE '{name}'", f'INSERT INTO "{name}"'))):
        print(one)
"""


def install() -> None:
    """Make the virtual environment of the projects, where it isn't there yet."""
    done = CACHE / "installed"
    if done.exists():
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", str(CACHE / "venv")], check=True)
    subprocess.run([str(_PYTHON), "-m", "pip", "install", "-q", *_PACKAGES], check=True)
    done.touch()


def dumps(dialect: Dialect, server: Postgres | MariaDb | None, names: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Give the dump of each schema; one whose migrations fail on this engine is said and left out."""
    folder = CACHE / "sql" / dialect.value
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        kept = folder / f"{name}.sql"
        if not kept.exists():
            failed = _make(dialect, server, name, kept)
            if failed:
                print(f"  {name}: no schema on {dialect.value}: {failed}", file=sys.stderr, flush=True)
                kept.with_suffix(".failed").write_text(failed)
                continue
        yield name, kept


def _make(dialect: Dialect, server: Postgres | MariaDb | None, name: str, kept: Path) -> str:
    import json

    environment = {**os.environ, "ACCEPT_KIND": dialect.value}
    if dialect is Dialect.SQLITE:
        path = kept.with_suffix(".db")
        path.unlink(missing_ok=True)
        environment["ACCEPT_DB"] = json.dumps({"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)})
        environment["ACCEPT_URL"] = f"sqlite:///{path}"
        dump = [sys.executable, "-c", _DUMP, str(path)]
    elif isinstance(server, Postgres):
        made = server.make()
        place = made.place()
        environment["PGPASSWORD"] = made.secret.reveal().decode()
        environment["ACCEPT_DB"] = json.dumps(
            {"ENGINE": "django.db.backends.postgresql", "NAME": made.database, "USER": made.user,
             "PASSWORD": environment["PGPASSWORD"], "HOST": place.socket or place.host, "PORT": place.port}
        )  # fmt: skip
        host = place.socket or place.host
        environment["ACCEPT_URL"] = (
            f"postgresql+psycopg://{made.user}:{environment['PGPASSWORD']}@/{made.database}?host={host}&port={place.port}"
        )
        dump = ["pg_dump", "--no-owner", "--no-acl", "--inserts", "-h", host, "-p", str(place.port), "-U", made.user,
                made.database]  # fmt: skip
    else:
        assert server is not None
        database = f"make_{name}"
        server.run(f"DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database} CHARACTER SET utf8mb4")
        environment["ACCEPT_DB"] = json.dumps(
            {"ENGINE": "django.db.backends.mysql", "NAME": database, "USER": "root", "PASSWORD": server.password,
             "HOST": server.socket, "OPTIONS": {"charset": "utf8mb4"}}
        )  # fmt: skip
        environment["ACCEPT_URL"] = (
            f"mysql+pymysql://root:{server.password}@localhost/{database}?unix_socket={server.socket}"
        )
        environment["MYSQL_PWD"] = server.password
        dump = ["mariadb-dump", "--no-defaults", "--skip-extended-insert", "--skip-lock-tables", "--skip-comments",
                "-S", server.socket, "-u", "root", database]  # fmt: skip
    if name in DJANGO:
        program = _SETTINGS.format(base=_BASE, apps=DJANGO[name])
    else:
        program = _OPTUNA if name == "optuna" else _TRAC
    ran = subprocess.run([str(_PYTHON), "-c", program], env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        return ran.stderr.strip().rpartition("\n")[2][:200]
    done = subprocess.run(dump, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr[-200:]
    kept.write_text(done.stdout)
    return ""
