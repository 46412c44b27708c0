"""How programs read their arguments: which options take a value, and which make them do nothing."""

from __future__ import annotations

from typing import NamedTuple


class Spec(NamedTuple):
    """The argument grammar of one program.

    Attributes:
        values: options that take the next word or the rest of theirs.
        inert: options with which it only tells what it would do.
        long_dash: ``-name`` is one option and no cluster.
        stops: options end at the first operand.
        signals: ``-KILL`` and ``-9`` are one option and no cluster.
        verbs: what follows the first operand has a grammar of its own, see :data:`VERBS`.
    """

    values: frozenset[str] = frozenset()
    inert: frozenset[str] = frozenset()
    long_dash: bool = False
    stops: bool = False
    signals: bool = False
    verbs: bool = False


def _names(text: str) -> frozenset[str]:
    return frozenset(f"-{name}" if len(name) == 1 else name if name[0] == "-" else f"--{name}" for name in text.split())


def spec(values: str = "", inert: str = "", *, long_dash: bool = False, stops: bool = False) -> Spec:
    """Build a grammar from option names: ``"C git-dir"`` is ``-C`` and ``--git-dir``."""
    return Spec(_names(values), _names(inert), long_dash, stops)


PLAIN = Spec()
#: Options with which nearly every program does nothing but talk about itself.
ALWAYS_INERT = frozenset(("--help", "--version", "--usage"))
#: Options with which a program that knows them does nothing; those that do not know them end with an error.
DRY_RUN = frozenset(("--dry-run", "--dryrun", "--simulate", "--just-print", "--recon", "--no-act", "--whatif", "--what-if"))

_KUBE = spec(
    "n namespace s server context cluster user kubeconfig o output f filename l selector c container p patch token as replicas "
    "field-selector grace-period timeout tail since type v image overrides cascade",
)
_DOCKER = spec("H host c context l log-level config f file p project-name profile project-directory env-file ansi", "dry-run", stops=True)._replace(
    verbs=True
)
_DOCKER_STOPS = spec("s signal t time")
_DOCKER_LISTS = spec("f filter format n last")
_APT = spec("t o c target-release option config-file", "s simulate dry-run just-print recon no-act download-only")
_HELM = spec("n namespace kube-context kubeconfig version f values set timeout repo", "dry-run")
_GIT = spec("C c git-dir work-tree namespace exec-path config-env super-prefix list-cmds attr-source", stops=True)._replace(verbs=True)
_DOCKER_VERBS: dict[str, Spec] = {
    "compose": spec("f file p project-name profile project-directory env-file ansi parallel t timeout", "dry-run"),
    "container": _DOCKER_STOPS,
    "rm": _DOCKER_STOPS,
    "rmi": _DOCKER_STOPS,
    "kill": _DOCKER_STOPS,
    "stop": _DOCKER_STOPS,
    "restart": _DOCKER_STOPS,
    "down": spec("t timeout rmi"),
    "ps": _DOCKER_LISTS,
    "images": _DOCKER_LISTS,
    "inspect": spec("f format type"),
    "logs": spec("n tail since until"),
    "build": spec("f file t tag build-arg label target platform network cache-from cache-to o output progress secret ssh"),
    "system": spec("filter format"),
    "volume": spec("filter format f-arg d driver o opt label"),
    "image": spec("filter format f-arg"),
    "network": spec("filter format d driver subnet"),
    "update": spec("m memory c cpus restart cpu-shares pids-limit"),
    "scale": spec("t timeout"),
}
#: Options with a value of git's verbs.
GIT_VERBS: dict[str, Spec] = {
    "add": spec("chmod pathspec-from-file", "n dry-run"),
    "am": spec("C p directory exclude include patch-format"),
    "apply": spec("C p directory exclude include whitespace", "check stat numstat summary"),
    "archive": spec("o output remote exec format prefix"),
    "bisect": spec("term-old term-new"),
    "blame": spec("L S C M date contents ignore-rev"),
    "branch": spec("u t-arg set-upstream-to contains no-contains merged-x no-merged-x points-at format sort column"),
    "checkout": spec("b B orphan conflict pathspec-from-file"),
    "cherry-pick": spec("m mainline s-arg X strategy-option strategy S-arg"),
    "clean": spec("e exclude", "n dry-run"),
    "clone": spec("b branch depth o origin u upload-pack c config reference j jobs template separate-git-dir shallow-since filter server-option bundle-uri"),
    "commit": spec("m message F file C c reuse-message reedit-message author date t template fixup squash cleanup trailer", "dry-run"),
    "config": spec("f file blob type default get get-all get-regexp unset unset-all comment value"),
    "diff": spec("S G U O output diff-filter stat-width inter-hunk-context unified word-diff-regex"),
    "difftool": spec("x extcmd t tool"),
    "fetch": spec("depth deepen shallow-since shallow-exclude j jobs refmap upload-pack o server-option negotiation-tip filter", "dry-run"),
    "filter-branch": spec("tree-filter index-filter env-filter msg-filter parent-filter commit-filter tag-name-filter subdirectory-filter d original setup"),
    "format-patch": spec("o output-directory start-number v in-reply-to to cc subject-prefix"),
    "grep": spec("e A B C m f max-depth threads max-count"),
    "log": spec("S G n L grep author committer since until after before format pretty max-count skip date diff-filter output"),
    "ls-remote": spec("upload-pack sort o server-option"),
    "merge": spec("m F s-arg X strategy strategy-option message into-name"),
    "mergetool": spec("t tool"),
    "mv": spec("", "n dry-run"),
    "notes": spec("m F C c ref"),
    "pull": spec("depth j jobs X strategy upload-pack s-arg", "dry-run"),
    "push": spec("o push-option receive-pack exec repo recurse-submodules-x", "n dry-run"),
    "rebase": spec("x exec onto s X strategy strategy-option whitespace C"),
    "reset": spec("pathspec-from-file"),
    "restore": spec("s source conflict pathspec-from-file"),
    "revert": spec("m mainline X strategy"),
    "rm": spec("pathspec-from-file", "n dry-run"),
    "show": spec("format pretty output S G"),
    "stash": spec("m message pathspec-from-file"),
    "submodule": spec("b branch reference depth j jobs name"),
    "switch": spec("c C orphan conflict create force-create"),
    "tag": spec("m F u local-user message file contains points-at sort format cleanup n-arg"),
    "update-ref": spec("m"),
    "worktree": spec("b B reason expire", "n dry-run"),
}
_AWS = spec(
    "profile region output endpoint-url query cli-input-json instance-ids db-instance-identifier user-name policy-arn role-name stack-name "
    "bucket key secret-id filters function-name table-name",
    "dryrun dry-run",
)

SPECS: dict[str, Spec] = {
    "rm": PLAIN,
    "cp": spec("t target-directory S suffix"),
    "mv": spec("t target-directory S suffix"),
    "ln": spec("t target-directory S suffix"),
    "install": spec("t target-directory S suffix m mode o owner g group"),
    "mkdir": spec("m mode Z context"),
    "chmod": spec("reference"),
    "chown": spec("reference from"),
    "chgrp": spec("reference"),
    "setfacl": spec("m modify x remove M X set set-file modify-file remove-file restore", "test"),
    "chattr": spec("v p"),
    "shred": spec("n iterations s size random-source"),
    "truncate": spec("s size r reference"),
    "touch": spec("d t r date reference time"),
    "tee": PLAIN,
    "sed": spec("e f l expression file line-length"),
    "grep": spec("e f m A B C d D regexp file max-count after-context before-context context include exclude exclude-dir label color"),
    "rg": spec("e f m A B C g t T j M r regexp file max-count glob type type-not threads pre replace max-columns sort iglob max-depth"),
    "ag": spec("A B C G m ignore"),
    "awk": spec("F v f i field-separator assign file include"),
    "find": spec(long_dash=True),
    "xargs": spec(
        "I L n P s d E a max-args max-procs max-lines replace-str delimiter max-chars arg-file process-slot-var", stops=True
    ),
    "tar": spec(
        "f C T X I b file directory files-from exclude exclude-from use-compress-program to-command checkpoint-action transform xform "
        "strip-components owner group mode newer rsh-command rmt-command info-script new-volume-script warning"
    ),
    "zip": spec("x i b t T unzip-command"),
    "unzip": spec("d x P"),
    "rsync": spec(
        "e f rsh exclude include exclude-from include-from files-from filter rsync-path port password-file log-file link-dest bwlimit chmod "
        "chown max-size min-size backup-dir suffix temp-dir partial-dir compare-dest copy-dest out-format info M timeout",
        "n dry-run list-only",
    ),
    "scp": spec("i P o F c J l S D X"),
    "sftp": spec("i P o F c J l S D b B R"),
    "ssh": spec("b B c D E e F I i J L l m O o p P Q R S W w", stops=True),
    "curl": spec(
        "o d F T X H u A b c e x m w K r E G-arg t y Y z C D output data data-binary data-raw data-urlencode data-ascii json form form-string upload-file "
        "request header user user-agent cookie cookie-jar referer proxy max-time write-out config range cert key cacert retry retry-delay connect-timeout "
        "resolve output-dir url url-query dump-header interface limit-rate max-redirs proto trace trace-ascii unix-socket netrc-file socks5 oauth2-bearer "
        "proxy-user noproxy aws-sigv4 connect-to engine"
    ),
    "wget": spec(
        "O o P U e i T t w Q A R D l a B I X output-document output-file directory-prefix user-agent execute input-file timeout tries wait quota "
        "header post-data post-file body-data body-file method user password referer load-cookies save-cookies base cut-dirs domains reject accept level "
        "append-output use-askpass"
    ),
    "git": _GIT,
    "docker": _DOCKER,
    "podman": _DOCKER,
    "nerdctl": _DOCKER,
    "docker-compose": _DOCKER,
    "kubectl": _KUBE,
    "oc": _KUBE,
    "helm": _HELM,
    "systemctl": spec("H M p t s n o host machine property type signal lines output state root kill-who kill-whom job-mode what", "dry-run"),
    "journalctl": spec("u t n p o D S U g c unit identifier lines priority output directory since until grep cursor file boot root namespace"),
    "service": PLAIN,
    "pkill": spec("u U G g P s t F d euid uid group pgroup parent session terminal pidfile signal ns nslist older O delimiter q queue c cgroup r runstates")._replace(signals=True),
    "pgrep": spec("u U G g P s t F d euid uid group pgroup parent session terminal pidfile ns nslist older O delimiter c cgroup r runstates"),
    "killall": spec("s u o y n Z signal user older-than younger-than ns context")._replace(signals=True),
    "fuser": spec("n N namespace")._replace(signals=True),
    "apt": _APT,
    "apt-get": _APT,
    "aptitude": _APT,
    "dpkg": spec("D admindir root instdir", "no-act dry-run simulate"),
    "dnf": spec("c x releasever enablerepo disablerepo repo setopt exclude installroot", "assumeno"),
    "pacman": spec("b r config dbpath root", "p print"),
    "pip": spec(
        "r c i t e index-url extra-index-url find-links f target prefix root requirement constraint editable platform python-version implementation abi "
        "log proxy timeout cache-dir trusted-host d dest no-binary only-binary progress-bar python",
        "dry-run",
    ),
    "npm": spec("prefix registry w workspace tag otp access C loglevel userconfig", "dry-run"),
    "make": spec("C f I j l o W directory file makefile include-dir jobs load-average old-file what-if new-file assume-new eval", "n dry-run just-print recon q question"),
    "terraform": spec("chdir", long_dash=True),
    "aws": _AWS,
    "gcloud": spec("project account configuration format filter zone region impersonate-service-account verbosity"),
    "az": spec("n g name resource-group subscription o output query"),
    "gh": spec("R repo t title b body F body-file json jq q search S L limit a assignee l label B base H head notes d description X method f raw-field field header"),
    "psql": spec("c f d U h p v F R o L command file dbname username host port set variable output log-file field-separator"),
    "mysql": spec("e u h P D S execute user host port database socket init-command defaults-file", stops=False),
    "sqlite3": spec("cmd init separator newline nullvalue", long_dash=True),
    "redis-cli": spec("h p a n u r i s x-arg user pass uri cacert cert key", stops=True),
    "mongosh": spec("eval host port u username p password f file authenticationDatabase", long_dash=False),
    "nc": spec("p s w i q x X I O T e c g G m o K exec sh-exec source-port wait source idle-timeout proxy proxy-type ssl-cert ssl-key"),
    "dd": PLAIN,
    "mkfs": spec("t type"),
    "mkfs.": spec("b F-arg L m N O E I i j n T U s S f-arg"),
    "parted": spec("a align"),
    "sfdisk": spec("N X Y partno label", "n no-act"),
    "sgdisk": spec("", "P pretend"),
    "wipefs": spec("o t offset types", "n no-act"),
    "fdisk": spec("b L t B c C H S u o sector-size type output"),
    "mount": spec("t o L U O T types options label uuid", "f fake"),
    "ip": spec("n netns f family"),
    "iptables": spec("t table w", stops=False),
    "crontab": spec("u"),
    "at": spec("q t f", stops=False),
    "su": spec("c g G s w command session-command group shell", stops=False),
    "chroot": spec("userspec groups", stops=True),
    "openssl": spec("in out inkey keyout passin passout pass k K iv S engine connect servername CAfile CApath cert key days subj newkey config extfile signkey CA CAkey set_serial addext name", long_dash=True),
    "ansible": spec("m a i u l b-arg e module-name args inventory user limit extra-vars forks f become-user private-key M c T", "C check syntax-check list-hosts list-tasks"),
    "cmake": spec("E G D S B P", stops=False),
    "split": spec("b C l n a filter bytes lines number suffix-length additional-suffix"),
    "sort": spec("k t o S T k key field-separator output buffer-size temporary-directory compress-program batch-size files0-from parallel"),
    "vim": spec("c cmd S u U i T s w W startuptime", stops=False),
    "less": spec("b h j k o O p P t T x y z"),
    "man": spec("P M C H L m s S E e p r pager manpath"),
    "gdb": spec("ex x p c iex ix command eval-command core pid init-command", long_dash=True),
    "ssh-keygen": spec("f t b C D N P O s I n V z m a r R w Z Y"),
    "gpg": spec("o u r a-arg output local-user recipient homedir keyserver recv-keys passphrase batch-arg"),
    "tmux": spec("c f L S T", stops=True),
    "screen": spec("S p c e h s t T X-arg", stops=True),
    "pm2": PLAIN,
    "supervisorctl": spec("c s u p configuration serverurl username password"),
    "nmcli": spec("f t m fields mode"),
    "ufw": spec("", "dry-run"),
    "useradd": spec("m-arg G g d s u c e k p groups gid home-dir shell uid comment"),
    "usermod": spec("G g d s u c e l p groups gid home shell uid comment login"),
    "passwd": spec("n x w i R"),
    "date": spec("d f r I-arg date file reference"),
    "nmap": spec("script p iL oN oX oG oA script-args", long_dash=False),
    "ffmpeg": spec(long_dash=True),
    "mail": spec("s a c b r S A q"),
    "twine": spec("r u p repository username password"),
    "cargo": spec("p package Z manifest-path target color registry index token git branch features", "dry-run n"),
    "logger": spec("t p f i-arg tag priority file n server P port"),
    "hdparm": spec(),
    "dmesg": spec("l f s n level facility"),
    "auditctl": spec("e b f r"),
    "sysctl": spec("p load f"),
}
for _same, _as in (
    ("egrep", "grep"), ("fgrep", "grep"), ("zgrep", "grep"), ("gawk", "awk"), ("mawk", "awk"), ("nawk", "awk"), ("bsdtar", "tar"), ("gtar", "tar"),
    ("mariadb", "mysql"), ("mongo", "mongosh"), ("ncat", "nc"), ("netcat", "nc"), ("yum", "dnf"), ("microdnf", "dnf"), ("zypper", "dnf"),
    ("pip3", "pip"), ("pnpm", "npm"), ("yarn", "npm"), ("bun", "npm"), ("gmake", "make"), ("tofu", "terraform"), ("vi", "vim"), ("nvim", "vim"),
    ("view", "vim"), ("batch", "at"), ("gsed", "sed"), ("grm", "rm"), ("gcp", "cp"), ("gmv", "mv"), ("gln", "ln"), ("gchmod", "chmod"),
    ("gchown", "chown"), ("gdd", "dd"), ("gfind", "find"), ("gxargs", "xargs"), ("ip6tables", "iptables"), ("gpg2", "gpg"), ("mailx", "mail"),
    ("mutt", "mail"), ("gshred", "shred"), ("gtruncate", "truncate"), ("ansible-playbook", "ansible"), ("cfdisk", "fdisk"), ("gdisk", "fdisk"),
):
    SPECS[_same] = SPECS[_as]


#: What follows the first operand, by program and verb.
VERBS: dict[str, dict[str, Spec]] = {
    "git": GIT_VERBS,
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose"), _DOCKER_VERBS),
}


def spec_of(name: str) -> Spec:
    """The grammar of a program; options of unknown programs take no value."""
    found = SPECS.get(name)
    if found is None:
        return SPECS["mkfs."] if name.startswith("mkfs.") else PLAIN
    return found
