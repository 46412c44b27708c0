"""What a command may see and change: real sandboxes, each test tries to get out."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from agent.control.exceptions import RequestInvalid
from agent.control.sandbox.base import Ended, Job, Limits, Mount, Profile, SandboxUnavailable
from agent.control.sandbox.bubblewrap import Bubblewrap
from tests.agent.control.sandbox.conftest import Run


async def test_runs_as_an_unprivileged_user_with_a_name_and_a_home(sh: Run) -> None:
    finished = await sh('id -un; id -u; echo "$HOME"; pwd; grep -E "^Cap(Eff|Prm|Bnd)|NoNewPrivs" /proc/self/status')
    lines = finished.output.text.split()
    assert lines[:4] == ["agent", "1000", "/workspace", "/workspace"]
    assert lines[4:] == ["CapPrm:", "0" * 16, "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]


async def test_nothing_of_the_daemons_environment_is_inside(sh: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a key nor a secret under an innocent name, in no process that the command can look at."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-one")
    monkeypatch.setenv("FOO", "sk-secret-two")
    # Inherited by the C library's environment, which is what a child would get.
    assert os.environ["FOO"] == "sk-secret-two"
    finished = await sh('env; cat /proc/*/environ; tr "\\0" "\\n" < /proc/1/environ')
    assert "sk-secret" not in finished.output.text
    finished = await sh("env | cut -d= -f1 | sort | tr '\\n' ' '")
    assert finished.output.text.split() == ["HOME", "LANG", "LOGNAME", "PATH", "PWD", "TERM", "USER"]


async def test_the_jobs_own_variables_are_set_and_on_no_command_line(sh: Run) -> None:
    finished = await sh('echo "$TOKEN"; cat /proc/*/cmdline', environment={"TOKEN": "job-secret"})
    assert finished.output.text.count("job-secret") == 1


async def test_the_hosts_files_are_not_there(sh: Run, ground: Path) -> None:
    (ground / "secret").write_text("s")
    (ground / "secret").chmod(0o644)
    finished = await sh(
        f"ls -d /root /home /var /work /srv /boot {ground} /etc/shadow /etc/ssh 2>/dev/null; ls -A / /etc"
    )
    listed = finished.output.text
    assert str(ground) not in listed
    for name in ("/root", "/home", "/var", "/srv", "/boot", "shadow"):
        assert name not in listed.split()
    assert "workspace" in listed.split()


async def test_no_descriptor_of_the_daemon_is_open_inside(sh: Run, ground: Path) -> None:
    with (ground / "secret").open("w") as stream:
        os.set_inheritable(stream.fileno(), True)
        finished = await sh("ls /proc/self/fd; ls -l /proc/1/fd /proc/self/fd")
    assert finished.output.text.split()[:4] == ["0", "1", "2", "3"]  # the fourth is ls's own
    assert "secret" not in finished.output.text
    assert "memfd" not in finished.output.text


@pytest.mark.parametrize("place", ["/", "/dev", "/usr", "/usr/bin", "/etc", "/bin/", "/proc", "/sys"])
async def test_writing_outside_is_refused(sh: Run, place: str) -> None:
    finished = await sh(f"touch {place}/x")
    assert finished.exit_code not in (0, None)


async def test_own_files_cannot_be_replaced(sh: Run) -> None:
    finished = await sh("echo x > /etc/passwd; rm -f /etc/hosts; mv /usr/bin/env /usr/bin/env2; cat /etc/passwd")
    assert finished.output.text.count("Read-only file system") == 3


async def test_temporary_folders_are_sized_and_gone_afterwards(sh: Run) -> None:
    limits = Limits(memory_mb=32)
    finished = await sh("head -c 40000000 /dev/zero > /tmp/x; wc -c < /tmp/x", limits=limits)
    assert "No space left on device" in finished.output.text
    assert finished.output.text.split()[-1] == str(16 * 1024 * 1024)
    finished = await sh("head -c 40000000 /dev/zero > /dev/shm/x; wc -c < /dev/shm/x", limits=limits)
    assert finished.output.text.split()[-1] == str(8 * 1024 * 1024)
    assert (await sh("ls -A /tmp /dev/shm")).output.text.split() == ["/dev/shm:", "/tmp:"]


async def test_nested_user_namespaces_are_refused(sh: Run) -> None:
    finished = await sh("unshare --user true || unshare --map-root-user --mount true")
    assert finished.exit_code != 0
    assert "unshare" in finished.output.text


async def test_no_network_by_default(sh: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = f"cat /proc/net/dev | grep -c : ; exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected"
        finished = await sh(f"bash -c '{command}'")
        assert finished.output.text.split()[0] == "1"  # the loopback device alone
        assert "connected" not in finished.output.text
        finished = await sh(f"bash -c '{command}'", network=True)
        assert "connected" in finished.output.text


async def test_only_its_own_processes_are_visible_and_reachable(sh: Run) -> None:
    finished = await sh(f"ls -d /proc/[0-9]* | wc -l; kill -0 {os.getpid()}")
    assert int(finished.output.text.split()[0]) <= 6
    assert finished.exit_code != 0


async def test_the_workspace_is_the_only_place_that_stays(sh: Run, workspace: Path) -> None:
    await sh("echo kept > file")
    assert (workspace / "file").read_text() == "kept\n"
    assert (workspace / "file").stat().st_uid == workspace.stat().st_uid != 0


async def test_a_reading_job_cannot_write(sh: Run, workspace: Path) -> None:
    finished = await sh("touch file", writable=False)
    assert "Read-only file system" in finished.output.text
    assert not list(workspace.iterdir())


async def test_the_network_profile_brings_name_resolution(sh: Run) -> None:
    assert (await sh("cat /etc/resolv.conf", network=True)).exit_code == 0
    assert (await sh("cat /etc/resolv.conf")).exit_code != 0
    assert "127.0.0.1 localhost" in (await sh("cat /etc/hosts")).output.text


class TestMounts:
    async def test_declared_folders_are_at_their_own_paths(self, sh: Run, ground: Path, engine: Bubblewrap) -> None:
        shown = ground / "shown"
        shown.mkdir(mode=0o777)
        shown.chmod(0o777)
        (shown / "a").write_text("hello")
        mount = Mount(shown)
        finished = await sh(f"cat {shown}/a; touch {shown}/b", mounts=(mount,))
        assert finished.output.text.startswith("hello")
        assert "Read-only file system" in finished.output.text
        finished = await sh(f"touch {shown}/b", mounts=(Mount(shown, writable=True),))
        assert finished.exit_code == 0
        assert (shown / "b").exists()

    async def test_the_daemons_home_cannot_be_mounted(self, workspace: Path, ground: Path) -> None:
        engine = Bubblewrap(bin_dir=ground / "bin", protected=(ground,))
        for path in (ground, ground / "workspaces", ground.parent, Path("/")):
            with pytest.raises(SandboxUnavailable):
                await engine.run(_mounting(workspace, path))
        engine.close()

    async def test_the_home_is_found_behind_a_link(self, workspace: Path, ground: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(ground)
        engine = Bubblewrap(bin_dir=ground / "bin", protected=(ground,))
        with pytest.raises(SandboxUnavailable, match="belongs to the daemon"):
            await engine.run(_mounting(workspace, tmp_path / "link"))
        engine.close()

    async def test_a_missing_folder_is_named(self, engine: Bubblewrap, workspace: Path, ground: Path) -> None:
        with pytest.raises(SandboxUnavailable, match="nowhere cannot be shown in the sandbox"):
            await engine.run(_mounting(workspace, ground / "nowhere"))


def _mounting(workspace: Path, path: Path) -> Job:
    return Job("job", ("true",), workspace, 5.0, Profile(mounts=(Mount(path),)))


class TestWhatCannotBeExpressed:
    async def test_an_option_cannot_be_smuggled_in_behind_a_nul(self, sh: Run) -> None:
        """Options are handed over NUL-separated: a NUL in a value would bind the host's root."""
        with pytest.raises(RequestInvalid, match="NUL"):
            await sh("ls /host", environment={"A": "x\0--ro-bind\0/\0/host"})
        with pytest.raises(RequestInvalid, match="NUL"):
            await sh("ls /host", workdir="/workspace\0--ro-bind\0/\0/host")

    async def test_a_value_that_looks_like_an_option_is_a_value(self, sh: Run) -> None:
        finished = await sh('echo "$A"', environment={"A": "--bind"})
        assert finished.output.text == "--bind\n"

    @pytest.mark.parametrize("name", ["", "A=B", "A B", "LD_PRELOAD\n"])
    async def test_a_bad_variable_name_is_refused(self, sh: Run, name: str) -> None:
        with pytest.raises(RequestInvalid, match="variable"):
            await sh("true", environment={name: "x"})

    async def test_an_argument_with_nul_is_refused(self, engine: Bubblewrap, workspace: Path) -> None:
        with pytest.raises(RequestInvalid):
            await engine.run(Job("job", ("echo", "a\0b"), workspace, 5.0))

    async def test_a_command_that_is_too_long_is_refused(self, engine: Bubblewrap, workspace: Path) -> None:
        with pytest.raises(RequestInvalid, match="too long"):
            await engine.run(Job("job", ("echo", "a" * 3_000_000), workspace, 5.0))

    async def test_a_missing_program_is_the_commands_failure(self, engine: Bubblewrap, workspace: Path) -> None:
        finished = await engine.run(Job("job", ("no-such-program",), workspace, 5.0))
        assert (finished.ended, finished.exit_code) == (Ended.EXITED, 127)
        assert "no-such-program" in finished.output.text

    async def test_a_missing_work_directory_is_the_commands_failure(self, sh: Run) -> None:
        finished = await sh("true", workdir="/workspace/nowhere")
        assert (finished.ended, finished.exit_code) == (Ended.EXITED, 1)
        assert "/workspace/nowhere" in finished.output.text
