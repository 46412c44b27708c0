"""Disks and volumes that are no disk device (A2)."""

from __future__ import annotations

import functools

from agent.control.guard.rules.model import PlaceRule, Rule

_rule = functools.partial(Rule, cls="A2", category="disk")
_place = functools.partial(PlaceRule, cls="A2", category="disk")

RULES: tuple[Rule, ...] = (
    _rule(
        id="dd.input",
        programs="dd gdd dcfldd dc3dd",
        operand="^if=",
        reason="It copies raw data.",
        alternative="Use cp for files.",
        match=("dd if=/dev/zero of=swapfile bs=1M count=2048", "dd bs=512 count=1 if=boot.img of=out.img"),
        spare=("dd --help", "add if=1 of=2"),
    ),
    _rule(
        id="disk.mkfs",
        programs="mkfs mkfs.* mke2fs mkdosfs mkntfs mkexfatfs newfs* mkswap",
        reason="It makes a new file system; what was there is lost.",
        match=("mkfs.ext4 -F disk.img",),
        spare=("mkfs.ext4 --help", "man mkfs.ext4"),
    ),
    _rule(
        id="disk.volumes",
        programs=(
            "lvremove vgremove pvremove lvreduce vgreduce lvresize lvextend lvcreate vgcreate"
            " pvcreate pvresize lvconvert lvchange vgchange vgexport dmsetup mdadm cryptsetup"
            " zpool bcache stratis multipath iscsiadm losetup"
        ),
        without="--detail --examine -D -E --query -Q",
        text=(
            r"^(?!.*(?:\bstatus\b|\blist\b|\binfo\b|\bget\b|\bhistory\b|\biostat\b|\bluksDump\b"
            r"|\bls\b|\btable\b|\bisLuks\b|^-[lajJ]+$|--list)).+"
        ),
        reason="It changes volumes.",
        match=("sudo lvremove -f vg0/scratch", "zpool destroy tank"),
        spare=("zpool status", "cryptsetup status x", "losetup -a", "mdadm --detail /dev/md0"),
    ),
    _rule(
        id="zfs.destroy",
        programs="zfs",
        verbs=(
            "destroy",
            "rollback",
            "rename",
            "receive",
            "recv",
            "promote",
            "unmount",
            "umount",
            "mount",
            "set",
            "create",
            "inherit",
        ),
        reason="It changes data sets.",
        match=("zfs destroy -r tank/projects",),
        spare=("zfs list",),
    ),
    _rule(
        id="btrfs.delete",
        programs="btrfs",
        verbs=(
            "subvolume delete",
            "device *",
            "balance start",
            "filesystem resize",
            "rescue *",
            "check --repair",
            "replace start",
            "property set",
            "quota *",
        ),
        reason="It changes volumes.",
        match=("btrfs subvolume delete /data/snap-01",),
        spare=("btrfs subvolume list /", "btrfs filesystem show"),
    ),
    _rule(
        id="disk.mount",
        programs="mount",
        at_least=1,
        reason="It changes what is mounted.",
        match=("sudo mount -o remount,ro /", "mount /dev/sdb1 /mnt"),
        spare=("mount", "mount -l", "mount --help"),
    ),
    _rule(
        id="disk.mount-all",
        programs="mount",
        options="-a --all",
        reason="It changes what is mounted.",
        match=("mount -a",),
        spare=("mount -l",),
    ),
    _rule(
        id="disk.umount",
        programs="umount fusermount fusermount3 udisksctl swapon swapoff mount.* pmount pumount eject",
        text=r"^(?!.*(?:\bstatus\b|\binfo\b|\bdump\b|\bmonitor\b|^-s$|--show|--summary)).+",
        reason="It detaches or attaches a file system.",
        match=("sudo umount -l /mnt/data", "sudo swapoff -a"),
        spare=("swapon --show", "udisksctl status"),
    ),
    _rule(
        id="fsck.repair",
        programs="fsck fsck.* e2fsck xfs_repair btrfsck ntfsfix reiserfsck dosfsck",
        without="-n -N --no-modify",
        reason="It repairs a file system by writing to it.",
        match=("sudo fsck -y /dev/sdb1",),
        spare=("fsck -n /dev/sdb1", "fsck -N /dev/sdb1"),
    ),
    _rule(
        id="disk.change",
        programs=(
            "resize2fs tune2fs xfs_growfs xfs_admin e2label fatlabel swaplabel debugfs partprobe"
            " growpart badblocks hdparm nvme sg_format sdparm blockdev fstrim e2image resize.f2fs"
        ),
        text=(
            r"^(?!.*(?:(?:^|\s)-l\b|(?:^|\s)-[iIrtTgCN]+(?:\s|$)|\blist\b|\bid-|smart-log|--get"
            r"|--report|-R\s+['\"]?(?:stat|ls|cat))).+"
        ),
        reason="It changes a disk or a file system.",
        match=("sudo resize2fs /dev/vg0/home 20G",),
        spare=("hdparm -I /dev/sda", "tune2fs -l /dev/sda1", "nvme list", "blockdev --getsize64 /dev/sda"),
    ),
    _rule(
        id="disk.partition",
        programs="fdisk cfdisk gdisk sgdisk sfdisk parted partx kpartx blkdiscard diskutil gpart",
        without="-l --list -d --dump -p --print -L --show -v --verify -i -F -J --json -x -s",
        text=r"^(?!.*(?:\bprint\b|\blist\b|\binfo\b|\bunit\b.*\bprint\b|\bverify|--info|-l\b|align-check)).+",
        reason="It changes partitions.",
        match=("parted disk.img mklabel gpt",),
        spare=("sudo fdisk -l", "sudo parted /dev/sda print", "diskutil list"),
    ),
    _rule(
        id="disk.wipefs",
        programs="wipefs",
        options="-a --all -o --offset",
        reason="It wipes the marks of a file system.",
        match=("wipefs -a disk.img",),
        spare=("wipefs disk.img", "wipefs -n -a disk.img"),
    ),
    _rule(
        id="disk.fallocate",
        programs="fallocate",
        options="-d -z -c -p --collapse-range --punch-hole --zero-range --dig-holes",
        reason="It removes content of a file.",
        match=("fallocate -p -o 0 -l 1G f",),
        spare=("fallocate -l 1G f",),
    ),
)

PLACES: tuple[PlaceRule, ...] = (
    _place(
        id="disk.device-write",
        kinds="write",
        places="disk device",
        inside=True,
        reason="It writes to a device.",
        match=("cat x > /dev/loop0",),
        spare=("echo x > /dev/null",),
    ),
)
