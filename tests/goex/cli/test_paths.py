"""Places on disk: where they are, and that one which isn't private is refused."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from goex.paths import Paths, UnsafePlace, cache_folder, check_file, check_folder, check_held, check_socket, make_open
from policies.errors import Unavailable


def as_nobody(work: Callable[[], None]) -> int:
    """Run `work` as user 65534 in a child. 0: it returned; 1: it raised UnsafePlace; 2: something else."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            work()
            code = 0
        except Unavailable as error:
            code = 1 if isinstance(error, UnsafePlace) else 3
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def made(tmp_path: Path, **extra: str) -> Paths:
    return Paths.from_env({"HOME": str(tmp_path), **extra})


def test_the_xdg_variables_are_followed() -> None:
    env = {"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r"}
    paths = Paths.from_env(env)
    assert str(paths.config_file) == "/c/goex/config.toml"
    assert str(paths.state_db) == "/s/goex/state.db"
    assert str(paths.user_socket) == "/r/goex/user.sock"


@pytest.mark.parametrize("value", ["", "relative/folder", "~/x"])
def test_what_isnt_absolute_is_ignored(value: str) -> None:
    paths = Paths.from_env({"HOME": "/h", "XDG_CONFIG_HOME": value, "XDG_STATE_HOME": value, "XDG_RUNTIME_DIR": value})
    assert str(paths.config_dir) == "/h/.config/goex"
    assert str(paths.state_dir) == "/h/.local/state/goex"
    assert str(paths.run_dir) == "/h/.local/state/goex/run"


def test_a_socket_path_that_the_kernel_would_cut_is_refused() -> None:
    fits = "/" + "r" * (107 - len("/goex/agent.sock") - 1)
    Paths.from_env({"HOME": "/h", "XDG_RUNTIME_DIR": fits})
    with pytest.raises(UnsafePlace, match="too long"):
        Paths.from_env({"HOME": "/h", "XDG_RUNTIME_DIR": fits + "r"})


def test_folders_are_made_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made(tmp_path).create()
    finally:
        os.umask(before)
    for folder in made(tmp_path).folders:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    made(tmp_path).create()


def test_what_is_missing_above_them_is_made_private_too_and_what_is_there_stays(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    before = os.umask(0)
    try:
        Paths.from_env({"HOME": str(home)}).create()
    finally:
        os.umask(before)
    modes = {str(each.relative_to(home)): stat.S_IMODE(each.stat().st_mode) for each in home.glob("**/")}
    assert modes.pop(".") == 0o755
    assert {".local", ".local/state", ".config"} <= set(modes)
    assert set(modes.values()) == {0o700}


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o701, 0o770])
def test_an_open_folder_is_refused_and_the_command_named(tmp_path: Path, mode: int) -> None:
    paths = made(tmp_path)
    paths.create()
    paths.state_dir.chmod(mode)
    with pytest.raises(UnsafePlace) as caught:
        paths.create()
    assert f"chmod 700 {paths.state_dir}" in caught.value.next_step
    assert stat.S_IMODE(paths.state_dir.stat().st_mode) == mode


def test_a_symlink_is_refused(tmp_path: Path) -> None:
    paths = made(tmp_path)
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    paths.state_dir.parent.mkdir(parents=True)
    paths.state_dir.symlink_to(real)
    with pytest.raises(UnsafePlace, match="goex is a symlink, and"):
        paths.create()


def test_a_file_in_the_place_is_refused(tmp_path: Path) -> None:
    paths = made(tmp_path)
    paths.state_dir.parent.mkdir(parents=True)
    paths.state_dir.write_text("")
    with pytest.raises(UnsafePlace, match="isn't a folder"):
        paths.create()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_somebody_elses_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    os.chown(folder, 1234, 1234)
    with pytest.raises(UnsafePlace, match="belongs to user 1234"):
        check_folder(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_as_an_unprivileged_user(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    assert as_nobody(made(home).create) == 3, "a home that isn't writable is a clear error"
    os.chown(home, 65534, 65534)
    assert as_nobody(made(home).create) == 0
    assert as_nobody(made(home).check) == 0
    root_made = tmp_path / "root"
    made(root_made).create()
    root_made.chmod(0o755)
    for inner in (root_made / ".config", root_made / ".local", root_made / ".local" / "state"):
        inner.chmod(0o755)
    assert as_nobody(made(root_made).check) == 1


def test_a_socket_must_be_one_of_ours_in_a_private_folder(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    path = folder / "user.sock"
    path.write_text("")
    with pytest.raises(UnsafePlace, match="isn't a socket"):
        check_socket(path)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        check_socket(path)
        path.rename(folder / "real")
        path.symlink_to(folder / "real")
        with pytest.raises(UnsafePlace, match="isn't a socket"):
            check_socket(path)
        path.unlink()
        (folder / "real").rename(path)
        if os.geteuid() == 0:
            os.chown(path, 1234, 1234)
            with pytest.raises(UnsafePlace, match="belongs to user 1234"):
                check_socket(path)
            os.chown(path, 0, 0)
        folder.chmod(0o755)
        with pytest.raises(UnsafePlace, match="open to others"):
            check_socket(path)


def test_a_file_of_ours_is_a_file_and_nobody_elses(tmp_path: Path) -> None:
    places = made(tmp_path)
    places.create()
    for file in places.files:
        file.touch(mode=0o600)
        places.check()
        file.chmod(0o640)
        with pytest.raises(UnsafePlace, match="open to others"):
            places.create()
        file.unlink()
        file.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(UnsafePlace, match="isn't a regular file"):
            places.check()
        file.unlink()
        (tmp_path / "elsewhere").touch(mode=0o600)
        file.hardlink_to(tmp_path / "elsewhere")
        with pytest.raises(UnsafePlace, match="another name") as caught:
            places.create()
        subprocess.run(caught.value.next_step.partition(": ")[2], shell=True, check=True)
        places.check()
        file.unlink()
        os.mkfifo(file, 0o600)  # to read one would take for ever
        with pytest.raises(UnsafePlace, match="isn't a regular file"):
            places.create()
        file.unlink()
        check_file(file)


def test_a_copied_state_folder_is_closed_by_one_command(tmp_path: Path) -> None:
    places = made(tmp_path)
    places.create()
    copied = [places.state_db, places.journal_head, places.vault_db, places.catalog]
    for file in copied:
        file.touch(mode=0o600)
        file.chmod(0o644)
    with pytest.raises(UnsafePlace, match=r"state\.db is open to others.*3 other files") as caught:
        places.check()
    subprocess.run(caught.value.next_step.partition(": ")[2], shell=True, check=True)
    places.check()


def test_a_file_that_sqlite_removes_meanwhile_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon that ends removes the log beside its database while a command looks at it."""
    places = made(tmp_path)
    places.create()
    log = places.state_db.with_name("state.db-wal")
    log.touch(mode=0o600)
    lstat = Path.lstat

    def gone(path: Path) -> os.stat_result:
        if path == log:
            log.unlink(missing_ok=True)
        return lstat(path)

    monkeypatch.setattr(os.path, "lexists", lambda path: Path(path) in (log, places.state_dir))
    monkeypatch.setattr(Path, "lstat", gone)
    places.check()


@pytest.mark.parametrize("target", ["real", "../held/real"])
def test_a_link_to_a_sockets_folder_lies_where_nobody_replaces_it(tmp_path: Path, target: str) -> None:
    """The folder itself is safe, and agents come to it by the link."""
    for name in ("held", "open"):
        make_open(tmp_path / name / "real")
    (tmp_path / "held" / "link").symlink_to(target)
    check_held(tmp_path / "held" / "link")
    (tmp_path / "open" / "link").symlink_to(f"{tmp_path}/held/link")
    (tmp_path / "held" / "way").symlink_to("../open/link")
    check_held(tmp_path / "held" / "way")
    (tmp_path / "open").chmod(0o777)
    for link in (tmp_path / "open" / "link", tmp_path / "held" / "way", tmp_path / "open" / ".." / "open" / "link"):
        with pytest.raises(UnsafePlace, match="may be replaced"):
            check_held(link)
    (tmp_path / "open").chmod(0o1777)
    check_held(tmp_path / "held" / "way")
    if os.geteuid() == 0:
        os.chown(tmp_path / "open" / "link", 1234, 1234, follow_symlinks=False)
        with pytest.raises(UnsafePlace, match="may be replaced"):
            check_held(tmp_path / "held" / "way")


def test_a_socket_for_others_lies_where_nobody_else_can_put_one(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "agents"
    make_open(folder)
    check_held(folder)
    for place, mode in ((folder, 0o777), (folder, 0o1777), (folder.parent, 0o775)):
        place.chmod(mode)
        with pytest.raises(UnsafePlace, match="may be replaced"):
            check_held(folder)
        place.chmod(0o755)
    folder.parent.chmod(0o1777)  # as /tmp is: what is ours there, nobody else moves
    check_held(folder)
    folder.parent.chmod(0o755)
    (tmp_path / "link").symlink_to(folder)
    check_held(tmp_path / "link")
    if os.geteuid() == 0:
        os.chown(folder.parent, 1234, 1234)
        with pytest.raises(UnsafePlace, match="may be replaced"):
            check_held(tmp_path / "link")


def test_the_folder_for_caches_is_made_private_and_refused_when_open(tmp_path: Path) -> None:
    folder = cache_folder({"HOME": str(tmp_path)})
    assert folder == tmp_path / ".cache" / "goex"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert cache_folder({"HOME": "/nowhere", "XDG_CACHE_HOME": str(tmp_path / "elsewhere")}).parent.name == "elsewhere"
    folder.chmod(0o755)
    with pytest.raises(UnsafePlace, match="open to others"):
        cache_folder({"HOME": str(tmp_path)})
    with pytest.raises(Unavailable):
        cache_folder({"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "relative"})


@pytest.mark.parametrize("umask", [0o077, 0o002, 0o022])
def test_a_folder_for_other_users_lets_them_through_and_no_more(tmp_path: Path, umask: int) -> None:
    """An agent's socket lies in it, and a unit's umask may be strict."""
    before = os.umask(umask)
    try:
        make_open(tmp_path / "a" / "b")
        (tmp_path / "closed").mkdir(mode=0o700)
        make_open(tmp_path / "closed")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b", "closed")] == [0o755, 0o755, 0o700]
