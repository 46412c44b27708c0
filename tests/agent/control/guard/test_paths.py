"""Paths as text: spelling, classes, globs, links."""

from __future__ import annotations

import pytest

from agent.control.guard import Assumptions, Guard, Verdict, paths
from agent.control.guard.marks import ONE, STAR, UNKNOWN
from tests.agent.control.guard import corpus

ASSUME = corpus.assume()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "/"),
        ("//", "/"),
        ("///", "/"),
        ("/./", "/"),
        ("/usr/..", "/"),
        ("/tmp/../", "/"),
        ("/tmp/../etc", "/etc"),
        ("/a//b/./c/", "/a/b/c"),
        ("/...x", "/...x"),
    ],
)
def test_spellings(path: str, expected: str) -> None:
    assert paths.normal(path) == expected


def test_no_step_up_out_of_the_unknown() -> None:
    assert not paths.normal(f"/{UNKNOWN}/../etc").startswith("/")
    assert paths.join("/ws", f"{UNKNOWN}/x") == f"{UNKNOWN}/x"
    assert paths.join(UNKNOWN, "x") == f"{UNKNOWN}/x"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        f"/{STAR}",
        "/etc",
        "/home",
        "/home/agent",
        "/home/bob",
        "/root",
        "/usr/bin",
        "/var/lib",
        "/lib64",
        f"/home/{STAR}",
        f"/etc/{STAR}",
        f"/home/agent/{STAR}",
        f"/{ONE}tc",
        f"/e{STAR}",
        f"/{STAR}/{STAR}",
    ],
)
def test_whole(path: str) -> None:
    assert paths.is_whole(path, ASSUME)


@pytest.mark.parametrize(
    "path",
    [
        "/...x",
        "/tmp",
        f"/tmp/{STAR}",
        "/etc/nginx",
        "/opt/app",
        "/var/log",
        f"/var/log/{STAR}",
        "/home/agent/src",
        f"/etc/{STAR}.conf",
        "/usr/local",
        "/mnt",
        f"/{UNKNOWN}",
        UNKNOWN,
        f"/home/{STAR}/.cache",
    ],
)
def test_not_whole(path: str) -> None:
    assert not paths.is_whole(path, ASSUME)


def test_a_workspace_that_is_home_may_be_emptied_by_a_relative_path() -> None:
    """In the sandbox both are one folder: `rm -rf ./*` asks, `rm -rf ~` is refused."""
    guard = Guard(Assumptions())
    assert guard.judge("rm -rf ./*").verdict is Verdict.APPROVE
    assert guard.judge("rm -rf build").verdict is Verdict.APPROVE
    assert guard.judge("rm -rf ~").verdict is Verdict.REFUSE
    assert guard.judge("rm -rf /workspace").verdict is Verdict.REFUSE
    assert guard.judge("rm -rf /").verdict is Verdict.REFUSE


@pytest.mark.parametrize(
    "path",
    [
        "/dev/sda",
        "/dev/sdb1",
        "/dev/hda",
        "/dev/vda2",
        "/dev/xvda",
        "/dev/nvme0n1p2",
        "/dev/mmcblk0",
        "/dev/md0",
        "/dev/dm-1",
        "/dev/mapper/x",
        "/dev/disk/by-id/x",
        "/dev/disk2",
        "/dev/rdisk1",
        f"/dev/sd{UNKNOWN}",
        f"/dev/sd{STAR}",
    ],
)
def test_disks(path: str) -> None:
    assert paths.is_disk(path)


@pytest.mark.parametrize(
    "path",
    [
        "/dev/null",
        "/dev/shm/x",
        "/dev/stdout",
        "/dev/loop0",
        "/dev/sd-card",
        "/dev/mapper/control",
        "/home/x/dev/sda",
        "/dev/mdx",
    ],
)
def test_no_disks(path: str) -> None:
    assert not paths.is_disk(path)


@pytest.mark.parametrize(
    ("path", "classes"),
    [
        ("/etc/hosts", {"system"}),
        ("/etc/cron.d/x", {"system", "startup"}),
        ("/var/tmp/x", {"scratch"}),
        ("/home/agent/src/app/etc/x", {"workspace"}),
        ("/home/agent/src/app/.git/hooks/x", {"workspace", "startup"}),
        ("/home/agent/src/app/.env", {"workspace", "secret"}),
        ("/home/agent/src/app/.env.example", {"workspace"}),
        ("/home/agent/.bashrc", {"startup"}),
        ("/home/agent/.ssh/id_rsa", {"secret"}),
        ("/home/agent/.ssh/id_rsa.pub", set()),
        ("/home/agent/.bash_history", {"history"}),
        ("/var/log/syslog", {"system", "logs"}),
        ("/home/agent/.gateway/audit.log", {"gateway", "audit"}),
        ("/home/agent/.gateway/config.yaml", {"gateway", "policy"}),
        ("/home/agent/.gateway/.env", {"gateway", "secret"}),
        ("/home/agent/src/app", {"workspace"}),
        ("/dev/sda", {"disk"}),
    ],
)
def test_classes(path: str, classes: set[str]) -> None:
    place = paths.place(path, ASSUME)
    assert {name for name, given in zip(place._fields, place, strict=True) if given} == classes


def test_links_are_followed() -> None:
    assert paths.through_links("/ws/r/x", {"/ws/r": "/"}) == "/x"
    assert paths.through_links("/ws/a", {"/ws/a": "/ws/b", "/ws/b": "/etc"}) == "/etc"
    assert paths.through_links("/ws/a/x", {"/ws/a": "/ws/a/b"}).startswith("/ws/a/b")


def test_covering() -> None:
    assert paths.covers("/a", "/a/b")
    assert paths.covers(f"/a/{STAR}", "/a/b/c")
    assert not paths.covers(f"/a/{STAR}.x", "/a/b")
    assert not paths.covers("/a/b", "/a")
