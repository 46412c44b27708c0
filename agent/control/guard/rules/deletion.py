"""Deletion and disks (A1, A2)."""

from __future__ import annotations

from agent.control.guard.rules.model import PlaceRule, Rule

_DELETE = {"cls": "A1", "category": "file-deletion"}
_DISK = {"cls": "A2", "category": "disk"}

RULES: tuple[Rule, ...] = (
    Rule(**_DELETE, id="rm.recursive", programs="rm grm", options="-r -R --recursive", reason="It deletes folders with all that is in them.",
         alternative="Name the files, or move them to the trash.", match=("rm -r old", "rm docs/drafts -rf", "rm --rec x", "RM -RF out"), spare=("rm notes.txt", "rm -- -r")),
    Rule(**_DELETE, id="rm.forced", programs="rm grm", options="-f --force", reason="It deletes files without a question.",
         alternative="Leave -f out.", match=("rm -f package-lock.json", "rm x --force"), spare=("rm -i a b", "rm --help -f")),
    Rule(**_DELETE, id="rm.no-preserve-root", programs="rm grm", options="--no-preserve-root", reason="It takes the safety catch off the root folder.", match=("rm --no-preserve-root notes.txt",), spare=("rm notes.txt",)),
    Rule(**_DELETE, id="find.delete", programs="find gfind", options="-delete", reason="It deletes all that it finds.", alternative="Run it with -print first.", match=("find . -name '*.orig' -delete",), spare=("find . -name '*.tmp' -print",)),
    Rule(**_DELETE, id="delete.tool", programs="shred srm wipe rimraf del-cli rm-rf trash-empty gio-trash sfill", reason="This tool deletes for good.", match=("shred -u notes/passwords.txt", "npx --yes rimraf dist"), spare=("shred --help", "trash-put old.pdf")),
    Rule(**_DELETE, id="delete.trash", programs="trash-empty trash-rm", reason="It empties the trash.", match=("trash-empty",), spare=("trash-list",)),
    Rule(**_DELETE, id="rsync.delete", programs="rsync", options="--delete --delete-after --delete-before --delete-during --delete-delay --delete-excluded --del --remove-source-files --delete-missing-args",
         reason="It deletes what the source lacks.", alternative="Run it with --dry-run first.", match=("rsync -a --delete empty/ public/",), spare=("rsync -a --exclude '*.delete' src/ backup/", "rsync -an --delete src/ mirror/")),
    Rule(**_DELETE, id="tar.remove-files", programs="tar gtar bsdtar", options="--remove-files --recursive-unlink", reason="It deletes the files that it packs.", match=("tar czf a.tgz --remove-files src",), spare=("tar --remove-files --help", "tar czf a.tgz src")),
    Rule(**_DELETE, id="zip.move", programs="zip", options="-m --move", reason="It deletes the files that it packs.", match=("zip -rm a.zip src",), spare=("zip -r a.zip src",)),
    Rule(**_DELETE, id="7z.delete", programs="7z 7za 7zz", options="-sdel -s", text=r"-sdel", reason="It deletes the files that it packs.", match=("7z a x.7z src -sdel",), spare=("7z a x.7z src",)),
    Rule(**_DELETE, id="cmake.rm", programs="cmake", text=r"-E\s+(?:rm|remove|remove_directory)\b", reason="cmake deletes files.", match=("cmake -E rm -rf build", "cmake -E remove_directory build"), spare=("cmake -E make_directory build",)),
    Rule(**_DELETE, id="truncate.shrink", programs="truncate gtruncate", options="-s --size", value=r"^(?:0\w*|[-<]\S*|\ue000.*)$", reason="It cuts off the content of a file.", match=("truncate -s 0 data/events.db",), spare=("truncate -s 64M disk.img",)),
    Rule(**_DELETE, id="mv.null", programs="mv gmv", operand=r"^/dev/(?:null|zero|full)$", reason="It moves files into nothing.", match=("mv ./archive /dev/null",), spare=("mv a b",)),
    Rule(**_DELETE, id="git.clean-tool", programs="fdupes jdupes rmlint", options="-d --delete -N", reason="It deletes files that look alike.", match=("fdupes -rdN .",), spare=("fdupes -r .",)),
    Rule(**_DELETE, id="tmpreaper", programs="tmpreaper tmpwatch bleachbit wipe-free", reason="It deletes old files.", match=("tmpreaper 7d /tmp",), spare=("tmpreaper --help",)),
    Rule(**_DELETE, id="powershell.remove", programs="remove-item rd del erase format diskpart cipher", reason="It deletes or formats.", match=("del /f /q x", "rd /s /q build"), spare=("dir",)),
    Rule(**_DISK, id="dd.input", programs="dd gdd dcfldd dc3dd", operand=r"^if=", reason="It copies raw data.", alternative="Use cp for files.", match=("dd if=/dev/zero of=swapfile bs=1M count=2048", "dd bs=512 count=1 if=boot.img of=out.img"), spare=("dd --help", "add if=1 of=2")),
    Rule(**_DISK, id="mkfs", programs="mkfs mkfs.* mke2fs mkdosfs mkntfs mkexfatfs newfs* mkswap", reason="It makes a new file system; what was there is lost.", match=("mkfs.ext4 -F disk.img",), spare=("mkfs.ext4 --help", "man mkfs.ext4")),
    Rule(**_DISK, id="disk.volumes", programs="lvremove vgremove pvremove lvreduce vgreduce lvresize lvextend lvcreate vgcreate pvcreate pvresize lvconvert lvchange vgchange vgexport dmsetup mdadm cryptsetup zpool bcache stratis multipath iscsiadm losetup",
         reason="It changes volumes.", without="--detail --examine -D -E --query -Q", text=r"^(?!.*(?:\bstatus\b|\blist\b|\binfo\b|\bget\b|\bhistory\b|\biostat\b|\bluksDump\b|\bls\b|\btable\b|\bisLuks\b|^-[lajJ]+$|--list)).+",
         match=("sudo lvremove -f vg0/scratch", "zpool destroy tank"), spare=("zpool status", "cryptsetup status x", "losetup -a", "mdadm --detail /dev/md0")),
    Rule(**_DISK, id="zfs.destroy", programs="zfs", verbs=("destroy", "rollback", "rename", "receive", "recv", "promote", "unmount", "umount", "mount", "set", "create", "inherit"), reason="It changes data sets.", match=("zfs destroy -r tank/projects",), spare=("zfs list",)),
    Rule(**_DISK, id="btrfs.delete", programs="btrfs", verbs=("subvolume delete", "device *", "balance start", "filesystem resize", "rescue *", "check --repair", "replace start", "property set", "quota *"), reason="It changes volumes.", match=("btrfs subvolume delete /data/snap-01",), spare=("btrfs subvolume list /", "btrfs filesystem show")),
    Rule(**_DISK, id="mount", programs="mount", at_least=1, reason="It changes what is mounted.", match=("sudo mount -o remount,ro /", "mount /dev/sdb1 /mnt"), spare=("mount", "mount -l", "mount --help")),
    Rule(**_DISK, id="mount.all", programs="mount", options="-a --all", reason="It changes what is mounted.", match=("mount -a",), spare=("mount -l",)),
    Rule(**_DISK, id="umount", programs="umount fusermount fusermount3 udisksctl swapon swapoff mount.* pmount pumount eject", text=r"^(?!.*(?:\bstatus\b|\binfo\b|\bdump\b|\bmonitor\b|^-s$|--show|--summary)).+", reason="It detaches or attaches a file system.", match=("sudo umount -l /mnt/data", "sudo swapoff -a"), spare=("swapon --show", "udisksctl status")),
    Rule(**_DISK, id="fsck.repair", programs="fsck fsck.* e2fsck xfs_repair btrfsck ntfsfix reiserfsck dosfsck", without="-n -N --no-modify", reason="It repairs a file system by writing to it.", match=("sudo fsck -y /dev/sdb1",), spare=("fsck -n /dev/sdb1", "fsck -N /dev/sdb1")),
    Rule(**_DISK, id="disk.change", programs="resize2fs tune2fs xfs_growfs xfs_admin e2label fatlabel swaplabel debugfs partprobe growpart badblocks hdparm nvme sg_format sdparm blockdev fstrim e2image resize.f2fs",
         text=r"^(?!.*(?:(?:^|\s)-l\b|(?:^|\s)-[iIrtTgCN]+(?:\s|$)|\blist\b|\bid-|smart-log|--get|--report|-R\s+['\"]?(?:stat|ls|cat))).+", reason="It changes a disk or a file system.", match=("sudo resize2fs /dev/vg0/home 20G",), spare=("hdparm -I /dev/sda", "tune2fs -l /dev/sda1", "nvme list", "blockdev --getsize64 /dev/sda")),
    Rule(**_DISK, id="disk.partition", programs="fdisk cfdisk gdisk sgdisk sfdisk parted partx kpartx blkdiscard diskutil gpart", without="-l --list -d --dump -p --print -L --show -v --verify -i -F -J --json -x -s",
         text=r"^(?!.*(?:\bprint\b|\blist\b|\binfo\b|\bunit\b.*\bprint\b|\bverify|--info|-l\b|align-check)).+", reason="It changes partitions.", match=("parted disk.img mklabel gpt",), spare=("sudo fdisk -l", "sudo parted /dev/sda print", "diskutil list")),
    Rule(**_DISK, id="disk.wipefs", programs="wipefs", options="-a --all -o --offset", reason="It wipes the marks of a file system.", match=("wipefs -a disk.img",), spare=("wipefs disk.img", "wipefs -n -a disk.img")),
    Rule(**_DISK, id="fallocate", programs="fallocate", options="-d -z -c -p --collapse-range --punch-hole --zero-range --dig-holes", reason="It removes content of a file.", match=("fallocate -p -o 0 -l 1G f",), spare=("fallocate -l 1G f",)),
)  # fmt: skip

PLACES: tuple[PlaceRule, ...] = (
    PlaceRule(**_DELETE, id="delete.glob", kinds="delete", places="glob", inside=True, reason="It deletes whatever a pattern matches.", alternative="List the files by name.", match=("rm *", "rm src/*.py"), spare=("rm notes.txt",)),
    PlaceRule(**_DELETE, id="delete.outside", kinds="delete", places="outside", inside=True, reason="It deletes outside the workspace.", match=("rm ~/Documents/thesis.docx", "unlink ~/.local/share/app/state.json", "cd .. && rm x"), spare=("rm /tmp/out.json", "unlink ./latest")),
    PlaceRule(**_DELETE, id="delete.computed", kinds="delete", places="computed", inside=True, reason="What it deletes comes from another command or an unknown variable.", alternative="Print the list first, then name the files.", match=("git ls-files --others | xargs rm", "find . -exec rm {} \\;", "rm $(ls)"), spare=("rm a b",)),
    PlaceRule(**_DISK, id="disk.device-write", kinds="write", places="disk device", inside=True, reason="It writes to a device.", match=("cat x > /dev/loop0",), spare=("echo x > /dev/null",)),
)  # fmt: skip
