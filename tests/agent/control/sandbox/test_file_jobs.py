"""The file jobs, in real sandboxes."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agent.control.exceptions import RequestInvalid
from agent.control.sandbox.base import Finished, Limits, Profile
from agent.control.sandbox.bubblewrap import Bubblewrap
from agent.control.sandbox.file_jobs import (
    Entry,
    EntryKind,
    FileJob,
    FileJobFailed,
    FileProblem,
    FileRange,
    Listing,
    list_folder,
    parse_list,
    parse_read,
    parse_write,
    read_lines,
    write_file,
)

Do = Callable[[FileJob], Awaitable[Finished]]

ODD_NAMES = [
    "-rf",
    "--help",
    "a b",
    "a\nb",
    "\n",
    "$(touch x)",
    "`touch x`",
    "'\"",
    "*",
    "!",
    "(",
    "é€",
    "a;b",
    "[ -d",
    "\\n",
]


@pytest.fixture
def do(engine: Bubblewrap, workspace: Path) -> Do:
    async def run(pieces: FileJob) -> Finished:
        return await engine.run(pieces.job("job", workspace, 10.0, Profile()))

    return run


@pytest.fixture
def put(workspace: Path) -> Callable[[str, bytes], Path]:
    """A file in the workspace, as the sandbox user's."""

    def put(name: str, data: bytes = b"") -> Path:
        path = workspace / name
        path.write_bytes(data)
        os.chown(path, workspace.stat().st_uid, workspace.stat().st_gid)
        return path

    return put


Put = Callable[..., Path]


class TestRead:
    async def read(self, do: Do, path: str, **bounds: int) -> FileRange:
        pieces = read_lines(path, **bounds)
        return parse_read(pieces, await do(pieces))

    async def test_whole_file_byte_for_byte(self, do: Do, put: Put) -> None:
        data = bytes(range(256)) + b"\r\nend without a line feed"
        put("f", data)
        assert await self.read(do, "f") == FileRange(len(data), data, more=False)
        assert await self.read(do, "/workspace/f") == FileRange(len(data), data, more=False)

    async def test_a_range_of_lines(self, do: Do, put: Put) -> None:
        data = b"".join(b"line %d\n" % n for n in range(1, 101))
        put("f", data)
        assert await self.read(do, "f", first=3, lines=2) == FileRange(len(data), b"line 3\nline 4\n", more=True)
        assert await self.read(do, "f", first=99, lines=2) == FileRange(len(data), b"line 99\nline 100\n", more=False)
        assert await self.read(do, "f", first=101) == FileRange(len(data), b"", more=False)

    async def test_a_last_line_without_end_is_whole(self, do: Do, put: Put) -> None:
        put("f", b"one\ntwo")
        assert await self.read(do, "f", lines=2) == FileRange(7, b"one\ntwo", more=False)
        assert await self.read(do, "f", lines=1) == FileRange(7, b"one\n", more=True)

    async def test_long_lines_are_cut_by_bytes(self, do: Do, put: Put) -> None:
        put("f", b"x" * 1_000_000)
        assert await self.read(do, "f", max_bytes=50_000) == FileRange(1_000_000, b"x" * 50_000, more=True)
        put("g", b"abc\ndef\n")
        assert await self.read(do, "g", max_bytes=3) == FileRange(8, b"abc", more=True)
        assert await self.read(do, "g", max_bytes=4) == FileRange(8, b"abc\n", more=True)
        assert await self.read(do, "g", max_bytes=8) == FileRange(8, b"abc\ndef\n", more=False)

    async def test_empty_lines_and_an_empty_file(self, do: Do, put: Put) -> None:
        put("f", b"\n\n\n")
        assert await self.read(do, "f", lines=2) == FileRange(3, b"\n\n", more=True)
        put("g")
        assert await self.read(do, "g") == FileRange(0, b"", more=False)

    @pytest.mark.parametrize("name", ODD_NAMES)
    async def test_odd_names_are_only_names(self, do: Do, put: Put, workspace: Path, name: str) -> None:
        put(name, b"content")
        assert (await self.read(do, name)).data == b"content"
        assert [path.name for path in workspace.iterdir()] == [name]

    @pytest.mark.parametrize(
        ("make", "problem"),
        [
            (lambda path: None, FileProblem.MISSING),
            (lambda path: path.mkdir(), FileProblem.IS_FOLDER),
            (os.mkfifo, FileProblem.NOT_REGULAR),
            (lambda path: path.symlink_to("/dev/zero"), FileProblem.NOT_REGULAR),
            (lambda path: path.symlink_to("nowhere"), FileProblem.MISSING),
        ],
    )
    async def test_what_is_no_file_is_refused(
        self, do: Do, workspace: Path, make: Callable[[Path], None], problem: FileProblem
    ) -> None:
        make(workspace / "odd")
        with pytest.raises(FileJobFailed, match="'odd'") as caught:
            await self.read(do, "odd")
        assert caught.value.problem is problem

    async def test_a_file_of_the_host_is_not_there(self, do: Do, ground: Path, workspace: Path) -> None:
        (ground / "secret").write_text("s")
        (workspace / "link").symlink_to(ground / "secret")
        for path in ("link", str(ground / "secret"), "../" * 9 + str(ground / "secret")[1:]):
            with pytest.raises(FileJobFailed):
                await self.read(do, path)

    def test_bounds_are_checked(self) -> None:
        for bounds in ({"first": 0}, {"lines": 0}, {"max_bytes": -1}):
            with pytest.raises(RequestInvalid):
                read_lines("f", **bounds)
        with pytest.raises(RequestInvalid):
            read_lines("")

    async def test_reading_jobs_cannot_write(self, workspace: Path) -> None:
        assert not read_lines("f").job("job", workspace, 1.0, Profile()).profile.workspace_writable
        assert write_file("f", b"").job("job", workspace, 1.0, Profile()).profile.workspace_writable
        reading = Profile(workspace_writable=False)
        assert not write_file("f", b"").job("job", workspace, 1.0, reading).profile.workspace_writable


class TestList:
    async def listed(self, do: Do, path: str = ".", max_entries: int = 500) -> Listing:
        pieces = list_folder(path, max_entries=max_entries)
        return parse_list(pieces, await do(pieces))

    async def test_names_kinds_and_sizes_in_order(self, do: Do, put: Put, workspace: Path) -> None:
        put("b", b"12345")
        put(".hidden", b"1")
        (workspace / "c").mkdir()
        (workspace / "l").symlink_to("b")
        os.mkfifo(workspace / "p")
        listing = await self.listed(do)
        kinds = [(entry.name, entry.kind) for entry in listing.entries]
        assert kinds == [
            (".hidden", EntryKind.FILE),
            ("b", EntryKind.FILE),
            ("c", EntryKind.FOLDER),
            ("l", EntryKind.LINK),
            ("p", EntryKind.OTHER),
        ]
        assert listing.entries[1] == Entry("b", EntryKind.FILE, 5)
        assert not listing.more

    async def test_odd_names_come_back_exactly(self, do: Do, put: Put, workspace: Path) -> None:
        for name in ODD_NAMES:
            put(name)
        put(os.fsdecode(b"\xff\xfe"))
        put("n" * 255)
        listing = await self.listed(do)
        assert sorted(entry.name for entry in listing.entries) == sorted(path.name for path in workspace.iterdir())

    async def test_a_large_folder_is_bounded(self, do: Do, put: Put) -> None:
        for number in range(30):
            put(f"{number:03}" + "n" * 250)
        listing = await self.listed(do, max_entries=20)
        assert len(listing.entries) == 20
        assert listing.more
        assert not (await self.listed(do, max_entries=30)).more

    async def test_an_empty_folder_and_odd_folders(self, do: Do, workspace: Path) -> None:
        assert await self.listed(do) == Listing((), more=False)
        for name in ("-x", "!", "a\nb"):
            (workspace / name).mkdir(mode=0o755)
            (workspace / name).chmod(0o755)
            (workspace / name / "in").touch()
            assert [entry.name for entry in (await self.listed(do, name)).entries] == ["in"]

    async def test_what_is_no_folder_is_refused(self, do: Do, put: Put) -> None:
        put("f")
        with pytest.raises(FileJobFailed, match="is no folder"):
            await self.listed(do, "f")
        with pytest.raises(FileJobFailed, match="does not exist"):
            await self.listed(do, "none")


class TestWrite:
    async def write(self, do: Do, path: str, content: bytes, *, parents: bool = False) -> None:
        pieces = write_file(path, content, parents=parents)
        parse_write(pieces, await do(pieces))

    async def test_new_file_byte_for_byte(self, do: Do, workspace: Path) -> None:
        data = bytes(range(256)) * 4096
        await self.write(do, "f", data)
        assert (workspace / "f").read_bytes() == data
        assert (workspace / "f").stat().st_mode & 0o777 == 0o644

    async def test_an_empty_file(self, do: Do, workspace: Path) -> None:
        await self.write(do, "f", b"")
        assert (workspace / "f").read_bytes() == b""

    async def test_replacing_keeps_permissions_and_leaves_no_temporary_file(
        self, do: Do, put: Put, workspace: Path
    ) -> None:
        put("f", b"old").chmod(0o750)
        await self.write(do, "f", b"new")
        assert (workspace / "f").read_bytes() == b"new"
        assert (workspace / "f").stat().st_mode & 0o777 == 0o750
        assert [path.name for path in workspace.iterdir()] == ["f"]

    async def test_folders_are_made_on_request_only(self, do: Do, workspace: Path) -> None:
        with pytest.raises(FileJobFailed, match="folder that does not exist") as caught:
            await self.write(do, "a/b/c", b"x")
        assert caught.value.problem is FileProblem.NO_PARENT
        await self.write(do, "a/b/c", b"x", parents=True)
        assert (workspace / "a/b/c").read_bytes() == b"x"

    @pytest.mark.parametrize("name", ODD_NAMES)
    async def test_odd_names_are_only_names(self, do: Do, workspace: Path, name: str) -> None:
        await self.write(do, name, b"x")
        await self.write(do, f"{name}.d/{name}", b"y", parents=True)
        assert (workspace / name).read_bytes() == b"x"
        assert sorted(path.name for path in workspace.iterdir()) == sorted([name, f"{name}.d"])

    @pytest.mark.parametrize(
        ("make", "problem"),
        [
            (lambda path: path.mkdir(), FileProblem.IS_FOLDER),
            (os.mkfifo, FileProblem.NOT_REGULAR),
            (lambda path: path.symlink_to("other"), FileProblem.IS_LINK),
        ],
    )
    async def test_what_is_no_file_is_refused(
        self, do: Do, workspace: Path, make: Callable[[Path], None], problem: FileProblem
    ) -> None:
        make(workspace / "odd")
        with pytest.raises(FileJobFailed) as caught:
            await self.write(do, "odd", b"x")
        assert caught.value.problem is problem
        assert [path.name for path in workspace.iterdir()] == ["odd"]

    async def test_too_large_a_file_leaves_the_old_one(self, engine: Bubblewrap, put: Put, workspace: Path) -> None:
        put("f", b"old")
        pieces = write_file("f", b"x" * 3_000_000)
        job = pieces.job("job", workspace, 10.0, Profile(limits=Limits(disk_mb=1)))
        with pytest.raises(FileJobFailed):
            parse_write(pieces, await engine.run(job))
        assert (workspace / "f").read_bytes() == b"old"
        assert [path.name for path in workspace.iterdir()] == ["f"]

    async def test_outside_is_refused(self, do: Do) -> None:
        with pytest.raises(FileJobFailed, match="may not be opened"):
            await self.write(do, "/usr/x", b"x")

    @pytest.mark.parametrize("path", ["", ".", "..", "a/", "a/.", "a/.."])
    def test_a_path_of_a_folder_is_refused(self, path: str) -> None:
        with pytest.raises(RequestInvalid):
            write_file(path, b"")
