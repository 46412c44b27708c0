"""Deletion (A1)."""

from __future__ import annotations

import functools

from agent.control.guard.rules.model import PlaceRule, Rule

_rule = functools.partial(Rule, cls="A1", category="file-deletion")
_place = functools.partial(PlaceRule, cls="A1", category="file-deletion")

RULES: tuple[Rule, ...] = (
    _rule(
        id="rm.recursive",
        programs="rm grm",
        options="-r -R --recursive",
        reason="It deletes folders with all that is in them.",
        alternative="Name the files, or move them to the trash.",
        match=("rm -r old", "rm docs/drafts -rf", "rm --rec x", "RM -RF out"),
        spare=("rm notes.txt", "rm -- -r"),
    ),
    _rule(
        id="rm.forced",
        programs="rm grm",
        options="-f --force",
        reason="It deletes files without a question.",
        alternative="Leave -f out.",
        match=("rm -f package-lock.json", "rm x --force"),
        spare=("rm -i a b", "rm --help -f"),
    ),
    _rule(
        id="rm.no-preserve-root",
        programs="rm grm",
        options="--no-preserve-root",
        reason="It takes the safety catch off the root folder.",
        match=("rm --no-preserve-root notes.txt",),
        spare=("rm notes.txt",),
    ),
    _rule(
        id="find.delete",
        programs="find gfind",
        options="-delete",
        reason="It deletes all that it finds.",
        alternative="Run it with -print first.",
        match=("find . -name '*.orig' -delete",),
        spare=("find . -name '*.tmp' -print",),
    ),
    _rule(
        id="delete.tool",
        programs="shred srm wipe rimraf del-cli rm-rf trash-empty gio-trash sfill",
        reason="This tool deletes for good.",
        match=("shred -u notes/passwords.txt", "npx --yes rimraf dist"),
        spare=("shred --help", "trash-put old.pdf"),
    ),
    _rule(
        id="delete.trash",
        programs="trash-empty trash-rm",
        reason="It empties the trash.",
        match=("trash-empty",),
        spare=("trash-list",),
    ),
    _rule(
        id="rsync.delete",
        programs="rsync",
        options=(
            "--delete --delete-after --delete-before --delete-during --delete-delay"
            " --delete-excluded --del --remove-source-files --delete-missing-args"
        ),
        reason="It deletes what the source lacks.",
        alternative="Run it with --dry-run first.",
        match=("rsync -a --delete empty/ public/",),
        spare=("rsync -a --exclude '*.delete' src/ backup/", "rsync -an --delete src/ mirror/"),
    ),
    _rule(
        id="tar.remove-files",
        programs="tar gtar bsdtar",
        options="--remove-files --recursive-unlink",
        reason="It deletes the files that it packs.",
        match=("tar czf a.tgz --remove-files src",),
        spare=("tar --remove-files --help", "tar czf a.tgz src"),
    ),
    _rule(
        id="zip.move",
        programs="zip",
        options="-m --move",
        reason="It deletes the files that it packs.",
        match=("zip -rm a.zip src",),
        spare=("zip -r a.zip src",),
    ),
    _rule(
        id="7z.delete",
        programs="7z 7za 7zz",
        options="-sdel -s",
        text="-sdel",
        reason="It deletes the files that it packs.",
        match=("7z a x.7z src -sdel",),
        spare=("7z a x.7z src",),
    ),
    _rule(
        id="cmake.rm",
        programs="cmake",
        text=r"-E\s+(?:rm|remove|remove_directory)\b",
        reason="cmake deletes files.",
        match=("cmake -E rm -rf build", "cmake -E remove_directory build"),
        spare=("cmake -E make_directory build",),
    ),
    _rule(
        id="truncate.shrink",
        programs="truncate gtruncate",
        options="-s --size",
        value=r"^(?:0\w*|[-<]\S*|\ue000.*)$",
        reason="It cuts off the content of a file.",
        match=("truncate -s 0 data/events.db",),
        spare=("truncate -s 64M disk.img",),
    ),
    _rule(
        id="mv.null",
        programs="mv gmv",
        operand="^/dev/(?:null|zero|full)$",
        reason="It moves files into nothing.",
        match=("mv ./archive /dev/null",),
        spare=("mv a b",),
    ),
    _rule(
        id="delete.alike",
        programs="fdupes jdupes rmlint",
        options="-d --delete -N",
        reason="It deletes files that look alike.",
        match=("fdupes -rdN .",),
        spare=("fdupes -r .",),
    ),
    _rule(
        id="delete.old",
        programs="tmpreaper tmpwatch bleachbit wipe-free",
        reason="It deletes old files.",
        match=("tmpreaper 7d /tmp",),
        spare=("tmpreaper --help",),
    ),
    _rule(
        id="powershell.remove",
        programs="remove-item rd del erase format diskpart cipher",
        reason="It deletes or formats.",
        match=("del /f /q x", "rd /s /q build"),
        spare=("dir",),
    ),
)

PLACES: tuple[PlaceRule, ...] = (
    _place(
        id="delete.glob",
        kinds="delete",
        places="glob",
        inside=True,
        reason="It deletes whatever a pattern matches.",
        alternative="List the files by name.",
        match=("rm *", "rm src/*.py"),
        spare=("rm notes.txt",),
    ),
    _place(
        id="delete.outside",
        kinds="delete",
        places="outside",
        inside=True,
        reason="It deletes outside the workspace.",
        match=("rm ~/Documents/thesis.docx", "unlink ~/.local/share/app/state.json", "cd .. && rm x"),
        spare=("rm /tmp/out.json", "unlink ./latest"),
    ),
    _place(
        id="delete.computed",
        kinds="delete",
        places="computed",
        inside=True,
        reason="What it deletes comes from another command or an unknown variable.",
        alternative="Print the list first, then name the files.",
        match=("git ls-files --others | xargs rm", r"find . -exec rm {} \;", "rm $(ls)"),
        spare=("rm a b",),
    ),
)
