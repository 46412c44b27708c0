from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.home import (
    SCOPE_NAME_MAX,
    SOCKET_PATH_MAX,
    Home,
    HomeLocked,
    HomeRefused,
    KeyUnusable,
    encoded_scope,
)

HOLD = """
import pathlib, sys, time
from gateway.home import Home
with Home(pathlib.Path(sys.argv[1])).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.prepare()
    return home


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def daemon(home: Home) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds the home until its standard input ends."""
    command = [sys.executable, "-c", HOLD, str(home.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.stdin.close()


def test_where_the_home_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert Home.default({"OSTIARY_HOME": str(tmp_path)}).root == tmp_path
    assert Home.default({"OSTIARY_HOME": "~/x"}).root == Path.home() / "x"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert Home.default({}).root == Path("/var/lib/ostiary")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert Home.default({"OSTIARY_HOME": ""}).root == Path.home() / ".ostiary"


def test_making_one_touches_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    assert home.state_db == tmp_path / "home" / "state.db"
    assert list(tmp_path.iterdir()) == []


def test_everything_is_for_the_owner_alone(home: Home) -> None:
    passable = 0o711 if os.geteuid() == 0 else 0o700
    assert mode(home.root) == mode(home.workspaces) == mode(home.bin) == passable
    for folder in (home.memories, home.skills, home.commands, home.trash):
        assert mode(folder) == 0o700
    for file in (home.audit_key_file, home.http_token_file):
        assert mode(file) == 0o600
    assert len(home.audit_key()) == 32
    assert len(home.http_token()) == 43
    names = {path.name for path in home.root.iterdir()}
    assert names == {"workspaces", "memories", "skills", "commands", "trash", "bin", "audit.key", "http_token"}


def test_an_open_umask_opens_nothing(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        home = Home(tmp_path / "deep" / "home")
        home.prepare()
    finally:
        os.umask(before)
    test_everything_is_for_the_owner_alone(home)


def test_preparing_again_keeps_the_keys(home: Home) -> None:
    key, token = home.audit_key(), home.http_token()
    home.prepare()
    assert (home.audit_key(), home.http_token()) == (key, token)


def test_many_at_once_agree_on_the_keys(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")

    def prepare(_: int) -> tuple[bytes, str]:
        home.prepare()
        return home.audit_key(), home.http_token()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(prepare, range(16)))) == 1
    assert not [path for path in home.root.iterdir() if path.name.startswith(".")]


def test_keys_that_others_could_read_are_closed(home: Home) -> None:
    home.http_token_file.chmod(0o644)
    home.prepare()
    assert mode(home.http_token_file) == 0o600


@pytest.mark.parametrize("bits", [0o720, 0o702, 0o777])
def test_a_home_that_others_may_write_to_is_refused(home: Home, bits: int) -> None:
    home.root.chmod(bits)
    with pytest.raises(HomeRefused, match="chmod go-w"):
        home.prepare()


def test_an_inner_folder_that_others_may_write_to_is_refused(home: Home) -> None:
    home.skills.chmod(0o777)
    with pytest.raises(HomeRefused, match="skills"):
        home.prepare()


def test_a_home_that_others_may_read_is_taken(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o755)
    Home(tmp_path / "home").prepare()


def test_somebody_elses_home_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(home.root, 12345, -1)
    else:
        uid = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    with pytest.raises(HomeRefused, match="belongs to the user with uid"):
        home.prepare()


def test_a_file_in_the_place_of_the_home_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    with pytest.raises(HomeRefused, match="no folder"):
        Home(tmp_path / "home").prepare()
    with pytest.raises(HomeRefused, match="cannot be prepared"):
        Home(tmp_path / "home" / "below").prepare()


def test_a_path_too_long_for_the_socket_is_refused(tmp_path: Path) -> None:
    room = SOCKET_PATH_MAX - len(os.fsencode(tmp_path)) - len("//control.sock")
    Home(tmp_path / ("x" * room)).prepare()
    with pytest.raises(HomeRefused, match="shorter path"):
        Home(tmp_path / ("x" * (room + 1))).prepare()
    assert not (tmp_path / ("x" * (room + 1))).exists()


def test_a_lost_key_is_not_replaced_beside_its_records(home: Home) -> None:
    home.state_db.touch()
    home.audit_key_file.unlink()
    with pytest.raises(KeyUnusable, match="backup"):
        home.prepare()
    assert not home.audit_key_file.exists()
    with pytest.raises(KeyUnusable, match="missing"):
        home.audit_key()


@pytest.mark.parametrize("content", [b"", b"x" * 31, b"x" * 33])
def test_a_key_of_another_length_is_refused(home: Home, content: bytes) -> None:
    home.audit_key_file.write_bytes(content)
    with pytest.raises(KeyUnusable, match="32"):
        home.prepare()


def test_the_token_is_made_when_missing_and_refused_when_empty(home: Home) -> None:
    before = home.http_token()
    home.http_token_file.unlink()
    after = home.http_token()
    assert before != after == home.http_token()
    assert mode(home.http_token_file) == 0o600
    home.http_token_file.write_text(" \n")
    with pytest.raises(KeyUnusable, match="empty"):
        home.http_token()


def test_no_error_shows_a_secret(home: Home) -> None:
    home.audit_key_file.write_bytes(b"a secret")
    with pytest.raises(KeyUnusable) as caught:
        home.audit_key()
    assert "a secret" not in str(caught.value)


def test_a_second_daemon_is_told_who_has_the_home(home: Home) -> None:
    with daemon(home) as holder:
        with pytest.raises(HomeLocked, match=f"process {holder.pid} runs") as caught, home.lock():
            pass
        assert caught.value.pid == holder.pid
    with home.lock():
        assert home.lock_file.read_text() == f"{os.getpid()}\n"
        with pytest.raises(HomeLocked, match=str(os.getpid())), home.lock():
            pass
    assert home.lock_file.read_text() == ""


def test_a_killed_daemon_leaves_no_lock(home: Home) -> None:
    """The file stays, with the pid of the dead in it, and means nothing."""
    for _ in range(2):
        with daemon(home) as holder:
            holder.send_signal(signal.SIGKILL)
            holder.wait()
        assert home.lock_file.read_text() == f"{holder.pid}\n"
    with home.lock():
        pass


def test_the_lock_is_not_handed_to_children(home: Home) -> None:
    with home.lock():
        child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        with home.lock():
            pass
    finally:
        child.communicate()


def test_a_lock_file_with_rubbish_in_it(home: Home) -> None:
    with home.lock():
        home.lock_file.write_bytes(b"\xff rubbish")
        with pytest.raises(HomeLocked, match="another process") as caught, home.lock():
            pass
    assert caught.value.pid == 0


def test_workspaces_are_made_for_their_owner(home: Home) -> None:
    uid = 65534 if os.geteuid() == 0 else None
    path = home.make_workspace("person:http:owner", uid)
    assert path == home.workspace("person:http:owner") == home.workspaces / "person%3Ahttp%3Aowner"
    assert mode(path) == 0o700
    assert path.stat().st_uid == (uid if uid is not None else os.geteuid())
    assert home.make_workspace("person:http:owner", uid) == path


def test_a_link_in_the_place_of_a_workspace_is_not_followed(home: Home, tmp_path: Path) -> None:
    home.workspace("person:x").symlink_to(tmp_path)
    with pytest.raises(OSError, match=r"person%3Ax"):
        home.make_workspace("person:x", 65534)
    assert tmp_path.stat().st_uid == os.geteuid()


@pytest.mark.parametrize(
    "scope", [".", "..", "...", "../../etc", "/etc/passwd", "a\x00b", "person:\udc80", "~root", "ä" * 300]
)
def test_no_scope_leaves_the_workspaces(home: Home, scope: str) -> None:
    path = home.make_workspace(scope)
    assert path.parent == home.workspaces
    assert path.resolve().parent == home.workspaces.resolve()


def test_an_empty_scope_is_refused(home: Home) -> None:
    with pytest.raises(ValueError, match="scope"):
        home.workspace("")


scopes = (
    st.text(st.characters(), min_size=1) | st.text("ab%~.:", min_size=1) | st.text("ab", min_size=195, max_size=300)
)


@settings(deadline=None, max_examples=200)
@given(scopes, scopes)
def test_two_scopes_never_share_a_name(one: str, other: str) -> None:
    first, second = encoded_scope(one), encoded_scope(other)
    assert (first == second) == (one == other)
    assert len(first) <= SCOPE_NAME_MAX
    assert first.isascii()
    assert "/" not in first
    assert first.strip(".")


def test_a_hashed_name_cannot_be_chosen(home: Home) -> None:
    long = "person:" + "x" * 300
    assert encoded_scope(encoded_scope(long)) != encoded_scope(long)
