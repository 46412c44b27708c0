"""What binds an approval to the files that its command runs: links, large files and odd ones included."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.control import evidence
from agent.control.evidence import changes, evidence_of


async def seen(workspace: Path, *names: str) -> str:
    return await evidence_of([f"/workspace/{name}" for name in names], workspace)


async def test_nothing_is_looked_at_outside_the_workspace(tmp_path: Path) -> None:
    assert await evidence_of(["/usr/bin/env", "/workspace", "/workspace/../etc/passwd"], tmp_path) == ""


async def test_a_file_that_comes_goes_or_changes_shows(tmp_path: Path) -> None:
    absent = await seen(tmp_path, "run.sh")
    (tmp_path / "run.sh").write_text("echo 1")
    first = await seen(tmp_path, "run.sh")
    (tmp_path / "run.sh").write_text("echo 2")
    second = await seen(tmp_path, "run.sh")
    assert len({absent, first, second}) == 3
    assert "/workspace/run.sh" in changes(first, second)


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("run.sh", "real/x.sh"),
        ("run.sh", "/workspace/real/x.sh"),
        ("run.sh", "real/../real/./x.sh"),
        ("dir", "real"),
        ("dir", "/workspace/real/"),
    ],
)
async def test_a_change_behind_a_link_shows(tmp_path: Path, link: str, target: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x.sh").write_text("echo 1")
    (tmp_path / link).symlink_to(target)
    name = "dir/x.sh" if link == "dir" else link
    before = await seen(tmp_path, name)
    (tmp_path / "real" / "x.sh").write_text("echo 2")
    after = await seen(tmp_path, name)
    assert before != after


async def test_a_link_that_is_turned_to_an_equal_file_shows(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("echo 1")
    (tmp_path / "run.sh").symlink_to("a")
    before = await seen(tmp_path, "run.sh")
    (tmp_path / "run.sh").unlink()
    (tmp_path / "run.sh").symlink_to("b")
    assert await seen(tmp_path, "run.sh") != before


@pytest.mark.parametrize("target", ["/etc/passwd", "../secret", "loop", "a/../../secret", "/workspaces/x"])
async def test_links_that_leave_the_workspace_or_never_end_are_not_followed(tmp_path: Path, target: str) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "secret").write_text("1")
    (workspace / "loop").symlink_to(target)
    before = await seen(workspace, "loop")
    assert "unreadable" in before
    (tmp_path / "secret").write_text("2")
    assert await seen(workspace, "loop") == before


async def test_a_file_too_large_to_read_is_bound_by_what_every_write_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "MAX_SCRIPT_FILE_BYTES", 8)
    large = tmp_path / "large.sh"
    large.write_text("echo one and two")
    before = await seen(tmp_path, "large.sh")
    assert await seen(tmp_path, "large.sh") == before
    times = large.stat()
    large.write_text("echo six and two")
    os.utime(large, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert await seen(tmp_path, "large.sh") != before


async def test_a_fifo_and_a_folder_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    text = await seen(tmp_path, "fifo", "folder")
    assert text.count("unreadable") == 2
