from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agent.control.sandbox.base import SandboxUnavailable
from agent.control.sandbox.workspace import (
    Identity,
    check_capabilities,
    obstacle,
    prepare_workspace,
    sandbox_identity,
)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away")
NOBODY = Identity(65534, 65534, drop=True)
SELF = Identity(os.geteuid(), os.getegid(), drop=False)


def facts(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_uid, stat.S_IMODE(status.st_mode)


class TestIdentity:
    @needs_root
    def test_root_becomes_the_configured_user(self) -> None:
        assert sandbox_identity(65534) == NOBODY
        assert sandbox_identity(4242) == Identity(4242, 4242, drop=True)

    @needs_root
    @pytest.mark.parametrize("uid", [0, -1])
    def test_root_never_runs_sandboxes_as_root(self, uid: int) -> None:
        with pytest.raises(SandboxUnavailable, match=r"Set sandbox\.uid"):
            sandbox_identity(uid)

    @pytest.mark.skipif(os.geteuid() == 0, reason="for ordinary users")
    def test_an_ordinary_user_stays_itself(self) -> None:
        assert sandbox_identity(0) == SELF

    def test_root_without_its_capabilities_is_refused_by_name(self, tmp_path: Path) -> None:
        status = tmp_path / "status"
        status.write_text("Name:\tx\nCapEff:\t0000000000000041\n")
        with pytest.raises(SandboxUnavailable, match="without CAP_KILL, CAP_SETUID"):
            check_capabilities(NOBODY, status)
        status.write_text("CapEff:\t00000000000000e1\n")
        check_capabilities(NOBODY, status)
        status.write_text("CapEff:\t0000000000000000\n")
        check_capabilities(SELF, status)


class TestPrepareWorkspace:
    @needs_root
    def test_a_new_one_belongs_to_the_sandbox_user_and_can_be_reached(self, ground: Path) -> None:
        path = ground / "workspaces" / "person%3Aann"
        prepare_workspace(path, NOBODY)
        assert facts(path) == (65534, 0o700)
        assert facts(path.parent) == (0, 0o711)
        prepare_workspace(path, NOBODY)

    def test_an_ordinary_users_is_its_own(self, tmp_path: Path) -> None:
        path = tmp_path / "workspaces" / "x"
        prepare_workspace(path, SELF)
        assert facts(path) == (SELF.uid, 0o700)
        assert facts(path.parent) == (SELF.uid, 0o700)

    def test_a_mode_that_is_too_wide_is_narrowed(self, tmp_path: Path) -> None:
        path = tmp_path / "w"
        path.mkdir()
        path.chmod(0o777)
        prepare_workspace(path, SELF)
        assert facts(path) == (SELF.uid, 0o700)

    def test_a_place_where_none_can_be_made_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(SandboxUnavailable, match="cannot be made: Not a directory"):
            prepare_workspace(tmp_path / "file" / "w", SELF)

    def test_a_link_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "w").symlink_to("real")
        with pytest.raises(SandboxUnavailable, match="not a folder that can be opened"):
            prepare_workspace(tmp_path / "w", SELF)

    @needs_root
    def test_somebody_elses_is_refused_with_the_command_that_helps(self, ground: Path) -> None:
        path = ground / "w"
        path.mkdir()
        (path / "file").touch()
        with pytest.raises(SandboxUnavailable, match=rf"chown -R 65534:65534 {path}"):
            prepare_workspace(path, NOBODY)
        os.chown(path, 1234, 1234)
        with pytest.raises(SandboxUnavailable, match="belongs to uid 1234"):
            prepare_workspace(path, NOBODY)

    @needs_root
    def test_a_closed_folder_on_the_way_is_named(self, ground: Path) -> None:
        closed = ground / "closed"
        closed.mkdir(mode=0o700)
        with pytest.raises(SandboxUnavailable, match=rf"{closed} has mode 0700.*0711"):
            prepare_workspace(closed / "w", NOBODY)


class TestObstacle:
    def test_modes_are_judged_for_owner_group_and_others(self, ground: Path) -> None:
        file = ground / "program"
        file.touch()
        file.chmod(0o750)
        owner, group = file.stat().st_uid, file.stat().st_gid
        assert not obstacle(file, Identity(owner, 1, drop=False), executable=True)
        assert not obstacle(file, Identity(4242, group, drop=False), executable=True)
        assert "not executable" in obstacle(file, Identity(4242, 4242, drop=False), executable=True)

    def test_a_missing_path_is_one(self, ground: Path) -> None:
        assert "No such file" in obstacle(ground / "none", SELF)
