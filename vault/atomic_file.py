"""Putting a vault's file into its place: whole or not at all, and never over another one unless that one is kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, insert

from vault import errors, schema
from vault.aead import Random
from vault.errors import VaultUnwritable
from vault.header import Header
from vault.schema import create_file


def place(
    path: Path,
    header: Header,
    random: Random,
    *,
    work: Callable[[Connection], None] = lambda _: None,
    aside: Path | None = None,
) -> None:
    """Make the file beside its place, whole, then give it its name.

    Without `aside` there must be no vault at `path`. With it, what is there gets that second name first (its unfinished
    transaction too, which SQLite would otherwise take for the new file's), and is then replaced in one step: at no
    moment is there none. Raises VaultExists, VaultUnwritable.
    """
    fresh = path.with_name(f".{path.name}.{random(8).hex()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in path.parent.glob(f".{path.name}.*"):  # by an attempt that was killed; it opens nothing
            left.unlink()
        try:
            file = create_file(fresh)
            try:
                with file.writing() as connection:
                    work(connection)
                    connection.execute(insert(schema.header), header.to_row())
            finally:
                file.close()
            if aside is None:
                os.link(fresh, path)
            else:
                _keep(path, aside)
                fresh.rename(path)
            sync_folder(path.parent)
        finally:
            fresh.unlink(missing_ok=True)
    except FileExistsError:
        raise errors.vault_exists(path) from None
    except OSError as error:
        raise VaultUnwritable(
            f"The vault can't be made at {path}: {error.strerror}.", next_step="Check the folder and the disk."
        ) from None


def _keep(path: Path, aside: Path) -> None:
    """A second name for what is at `path`."""
    os.link(path, aside, follow_symlinks=False)
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists():
        journal.rename(aside.with_name(f"{aside.name}-journal"))
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make names that were given or taken there durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
