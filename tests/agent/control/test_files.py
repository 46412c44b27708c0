from __future__ import annotations

import hashlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.control.files import FileTooLarge, PathRefused, read_bytes, sha256_file, write_atomic

BAD_PATHS = ["", ".", "/etc/passwd", "..", "../x", "a/../../x", "a/..", "x\0y"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("secret")
    return root


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


ODD: list[Callable[[Path], object]] = [
    lambda path: path.symlink_to("../secret"),
    lambda path: path.symlink_to("real"),
    lambda path: path.symlink_to("nowhere"),
    os.mkfifo,
    lambda path: path.mkdir(),
    _socket,
]


class TestRead:
    def test_a_file_below_folders(self, root: Path) -> None:
        (root / "a" / "b").mkdir(parents=True)
        (root / "a" / "b" / "c").write_bytes(b"hello")
        assert read_bytes(root, "a/b/c", 5) == b"hello"
        assert read_bytes(root, "./a//b/./c", 100) == b"hello"
        assert sha256_file(root, "a/b/c", 5) == hashlib.sha256(b"hello").hexdigest()

    def test_many_reads_make_one_content(self, root: Path) -> None:
        data = os.urandom(3_000_000)
        (root / "big").write_bytes(data)
        assert read_bytes(root, "big", len(data)) == data
        assert sha256_file(root, "big", len(data)) == hashlib.sha256(data).hexdigest()

    @pytest.mark.parametrize("size", [11, 5_000_000])
    def test_a_file_over_the_limit_is_refused(self, root: Path, size: int) -> None:
        (root / "f").write_bytes(b"x" * size)
        with pytest.raises(FileTooLarge, match="longer than 10 bytes"):
            read_bytes(root, "f", 10)
        with pytest.raises(FileTooLarge):
            sha256_file(root, "f", 10)

    @pytest.mark.parametrize("path", BAD_PATHS)
    def test_a_path_that_leaves_is_refused(self, root: Path, path: str) -> None:
        with pytest.raises(PathRefused):
            read_bytes(root, path, 100)
        with pytest.raises(PathRefused):
            sha256_file(root, path, 100)

    @pytest.mark.parametrize("make", ODD)
    def test_what_is_no_regular_file_is_refused_and_never_waited_for(
        self, root: Path, make: Callable[[Path], object]
    ) -> None:
        (root / "real").write_text("x")
        make(root / "odd")
        with pytest.raises(PathRefused):
            read_bytes(root, "odd", 100)

    @pytest.mark.skipif(os.geteuid() != 0, reason="makes a device")
    def test_a_device_is_refused(self, root: Path) -> None:
        os.mknod(root / "zero", 0o20666, os.makedev(1, 5))
        with pytest.raises(PathRefused):
            read_bytes(root, "zero", 100)

    def test_a_link_on_the_way_is_refused(self, root: Path) -> None:
        (root / "up").symlink_to("..")
        (root / "self").symlink_to(".")
        (root / "f").write_text("x")
        for path in ("up/secret", "self/f", "f/x"):
            with pytest.raises(PathRefused, match="is a link or no folder"):
                read_bytes(root, path, 100)

    def test_a_missing_file_is_just_missing(self, root: Path) -> None:
        with pytest.raises(FileNotFoundError):
            read_bytes(root, "none", 10)
        with pytest.raises(FileNotFoundError):
            read_bytes(root, "none/none", 10)

    def test_no_descriptor_stays_open(self, root: Path) -> None:
        (root / "a").mkdir()
        os.mkfifo(root / "a" / "odd")
        (root / "a" / "f").write_text("x" * 100)
        before = os.listdir("/proc/self/fd")
        for path, limit in (("a/odd", 1), ("a/f", 1), ("a/f", 1000), ("a/none", 1), ("b/none", 1)):
            try:
                read_bytes(root, path, limit)
            except (PathRefused, FileNotFoundError):
                continue
        assert os.listdir("/proc/self/fd") == before


class TestWrite:
    def test_new_and_replaced(self, root: Path) -> None:
        write_atomic(root, "f", b"one")
        assert (root / "f").read_bytes() == b"one"
        assert (root / "f").stat().st_mode & 0o777 == 0o600
        write_atomic(root, "f", b"two", mode=0o644)
        assert (root / "f").read_bytes() == b"two"
        assert (root / "f").stat().st_mode & 0o777 == 0o644
        assert os.listdir(root) == ["f"]

    def test_folders_on_request_only(self, root: Path) -> None:
        with pytest.raises(FileNotFoundError):
            write_atomic(root, "a/b/f", b"x")
        write_atomic(root, "a/b/f", b"x", parents=True)
        assert (root / "a" / "b").stat().st_mode & 0o777 == 0o700
        assert (root / "a" / "b" / "f").read_bytes() == b"x"

    @pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")
    def test_an_owner_gets_the_file_and_the_new_folders_alone(self, root: Path) -> None:
        (root / "mine").mkdir()
        write_atomic(root, "mine/new/f", b"x", parents=True, owner=(65534, 65534))
        owners = [(root / path).stat().st_uid for path in ("mine", "mine/new", "mine/new/f")]
        assert owners == [0, 65534, 65534]

    @pytest.mark.parametrize("path", BAD_PATHS)
    def test_a_path_that_leaves_is_refused(self, root: Path, path: str) -> None:
        with pytest.raises(PathRefused):
            write_atomic(root, path, b"x", parents=True)
        assert os.listdir(root) == []

    @pytest.mark.parametrize("make", ODD)
    def test_what_is_no_regular_file_is_not_replaced(self, root: Path, make: Callable[[Path], object]) -> None:
        (root / "real").write_text("x")
        make(root / "odd")
        with pytest.raises(PathRefused):
            write_atomic(root, "odd", b"y")
        assert sorted(os.listdir(root)) == ["odd", "real"]
        assert (root.parent / "secret").read_text() == "secret"

    def test_a_link_on_the_way_is_refused_with_parents_too(self, root: Path) -> None:
        (root / "up").symlink_to("..")
        with pytest.raises(PathRefused):
            write_atomic(root, "up/new", b"x", parents=True)
        assert not (root.parent / "new").exists()

    def test_a_failed_write_leaves_the_old_file_and_nothing_else(self, root: Path) -> None:
        write_atomic(root, "f", b"old")
        with pytest.raises(TypeError):
            write_atomic(root, "f", "text")  # type: ignore[arg-type]
        assert (root / "f").read_bytes() == b"old"
        assert os.listdir(root) == ["f"]

    def test_readers_see_one_content_or_the_other(self, root: Path) -> None:
        contents = [bytes([letter]) * 200_000 for letter in b"ab"]
        write_atomic(root, "f", contents[0])
        done = threading.Event()
        seen: set[bytes] = set()

        def read() -> None:
            while not done.is_set():
                seen.add(read_bytes(root, "f", 1_000_000))

        reader = threading.Thread(target=read)
        reader.start()
        for turn in range(40):
            write_atomic(root, "f", contents[turn % 2])
        done.set()
        reader.join()
        assert seen <= set(contents)

    def test_a_folder_that_is_swapped_for_a_link_meanwhile_is_never_followed(self, root: Path) -> None:
        """A command may rearrange the tree while the daemon walks it."""
        outside = root.parent / "outside"
        outside.mkdir()
        (root / "real").mkdir()
        (root / "link").symlink_to(outside)
        done = threading.Event()

        def swap() -> None:
            while not done.is_set():
                os.rename(root / "real", root / "spare")
                os.rename(root / "link", root / "real")
                os.rename(root / "real", root / "link")
                os.rename(root / "spare", root / "real")

        swapper = threading.Thread(target=swap)
        swapper.start()
        written = 0
        for _ in range(300):
            try:
                write_atomic(root, "real/f", b"x")
                written += 1
            except (PathRefused, FileNotFoundError):
                continue
        done.set()
        swapper.join()
        assert os.listdir(outside) == []
