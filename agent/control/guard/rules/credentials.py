"""Secrets (A12)."""

from __future__ import annotations

import functools

from agent.control.guard.rules.model import PlaceRule, Rule

_rule = functools.partial(Rule, cls="A12", category="secrets")
_place = functools.partial(PlaceRule, cls="A12", category="secrets")

RULES: tuple[Rule, ...] = (
    _rule(
        id="secret.print-token",
        programs="gh glab hub",
        verbs=("auth token",),
        reason="It prints a token.",
        match=("gh auth token",),
        spare=("gh auth status",),
    ),
    _rule(
        id="secret.show-token",
        programs="gh glab",
        verbs=("auth status",),
        options="-t --show-token",
        reason="It prints a token.",
        match=("gh auth status --show-token",),
        spare=("gh auth status",),
    ),
    _rule(
        id="secret.aws",
        programs="aws",
        verbs=(
            "configure get *secret*",
            "configure get *session_token*",
            "configure get *access_key*",
            "configure export-credentials",
            "secretsmanager get-secret-value",
            "secretsmanager batch-get-secret-value",
            "ssm get-parameter*",
            "sts get-session-token",
            "sts assume-role*",
            "sts get-federation-token",
            "ecr get-login-password",
            "ecr get-authorization-token",
            "kms decrypt",
            "iam create-access-key",
            "rds generate-db-auth-token",
            "codeartifact get-authorization-token",
            "eks get-token",
            "ec2 get-password-data",
        ),
        reason="It prints a secret.",
        match=(
            "aws configure get aws_secret_access_key",
            "aws secretsmanager get-secret-value --secret-id prod/db",
        ),
        spare=("aws configure list", "aws sts get-caller-identity"),
    ),
    _rule(
        id="secret.kubectl",
        programs="kubectl oc",
        verbs=("get secret*", "get secrets*", "view-secret", "create token", "extract secret/*"),
        text=r"-o\s*=?\s*\S|--output|--template|view-secret|create token|extract|go-template|jsonpath",
        reason="It prints a secret.",
        match=("kubectl get secret db -o yaml",),
        spare=("kubectl get secrets", "kubectl get pods -o wide"),
    ),
    _rule(
        id="secret.kube-config",
        programs="kubectl oc",
        verbs=("config view",),
        options="--raw",
        reason="It prints credentials.",
        match=("kubectl config view --raw",),
        spare=("kubectl config view", "kubectl config current-context"),
    ),
    _rule(
        id="secret.vault",
        programs="vault bao",
        verbs=("kv get", "read", "print token", "token create", "unwrap", "kv export", "token lookup"),
        reason="It prints a secret.",
        match=("vault kv get secret/prod",),
        spare=("vault kv list secret", "vault status"),
    ),
    _rule(
        id="secret.managers",
        programs=(
            "op bw pass gopass lpass keepassxc-cli doppler infisical chamber sops age-decrypt"
            " rbw secret-tool kwallet-query keyring akeyless berglas teller"
        ),
        verbs=(
            "read",
            "item get",
            "get *",
            "get",
            "show",
            "show *",
            "secrets",
            "secrets get",
            "secrets download",
            "export",
            "decrypt",
            "-d",
            "--decrypt",
            "lookup",
            "unlock",
            "run -- env",
            "list items",
            "clip",
            "code",
            "signin",
            "inject",
            "document get",
            "secrets --plain",
        ),
        reason="It prints a secret.",
        match=("op read op://a/b/c", "pass show mail", "bw get password x"),
        spare=("op account list", "pass ls"),
    ),
    _rule(
        id="secret.printenv",
        programs="printenv",
        operand="SECRET|TOKEN|PASSW|CREDENTIAL|(?:API|ACCESS|PRIVATE|AUTH)_?KEY|_PAT$",
        reason="It prints a secret variable.",
        match=("printenv AWS_SECRET_ACCESS_KEY",),
        spare=("printenv HOME",),
    ),
    _rule(
        id="secret.sops",
        programs="sops",
        options="-d --decrypt",
        reason="It prints secrets.",
        match=("sops -d secrets.enc.yaml",),
        spare=("sops --version",),
    ),
    _rule(
        id="secret.cloud",
        programs=(
            "gcloud az heroku fly flyctl vercel netlify railway doctl firebase ansible-vault"
            " wrangler supabase databricks oci ibmcloud linode-cli"
        ),
        text=(
            r"\b(?:auth print-(?:access|identity)-token|auth application-default"
            " print-access-token|secrets versions access|account get-access-token|keyvault"
            r" secret (?:show|download)|config:get|config\b.*--(?:shell|json)|config\s+-a"
            r"|^config\s*$|auth:token|authorizations|auth token|env pull|variables --kv|auth"
            " print|functions:config:get|ansible-vault view|storage account keys|acr credential"
            r" show|ad sp create|get-credentials.*--admin|view\s+\S|decrypt\s+\S|webapp config"
            " appsettings list|cosmosdb keys|redis list-keys|iam service-accounts keys create)"
        ),
        reason="It prints a secret.",
        match=(
            "gcloud auth print-access-token",
            "az keyvault secret show --name x --vault-name y",
            "heroku config:get KEY",
        ),
        spare=("gcloud auth list", "az account show", "gcloud projects list"),
    ),
    _rule(
        id="secret.keychain",
        programs="security",
        verbs=(
            "find-*-password",
            "dump-keychain",
            "export",
            "find-identity",
            "cms",
            "unlock-keychain",
            "add-*-password",
            "delete-*-password",
        ),
        text=r"(?:^|\s)-\w*[wga]|dump-keychain|export|unlock",
        reason="It reads the keychain.",
        match=("security find-generic-password -wa github",),
        spare=("security list-keychains",),
    ),
    _rule(
        id="secret.gpg-export",
        programs="gpg gpg2",
        text="--export-secret-(?:sub)?keys?",
        reason="It exports private keys.",
        match=("gpg --export-secret-keys -a > keys.asc",),
        spare=("gpg --export -a me",),
    ),
    _rule(
        id="secret.git-credential",
        programs="git",
        verbs=(
            "credential fill",
            "credential-store get",
            "credential-osxkeychain get",
            "credential-cache get",
            "credential-manager get",
        ),
        reason="It prints credentials.",
        match=("git credential fill",),
        spare=("git credential reject",),
    ),
    _rule(
        id="secret.metadata",
        programs="curl wget http https xh fetch",
        operand=(
            r"169\.254\.169\.254|metadata\.google\.internal|\[fd00:ec2::254\]|100\.100\.100\.200"
            r"|169\.254\.170\.2|metadata\.azure"
        ),
        reason="It reads the credentials of this machine's cloud instance.",
        match=("curl -s http://169.254.169.254/latest/meta-data/iam/security-credentials/",),
        spare=("curl https://x.example/169",),
    ),
    _rule(
        id="secret.process-environment",
        programs="ps",
        text=r"(?:^|\s)-?\w*(?<![a-z])(?:auxe\w*|axe\w*|eww\w*|auxwwe|-\w*E)(?:\s|$)",
        reason="It shows the environment of other processes.",
        match=("ps auxeww", "ps eww 1"),
        spare=("ps aux", "ps -ef", "ps -eo pid,comm --sort=-rss"),
    ),
    _rule(
        id="secret.memory",
        programs=(
            "gcore memdump mimikatz lazagne mimipenguin procdump john hashcat unshadow"
            " secretsdump.py keyctl ssh-add-dump"
        ),
        text="^(?!show|list).+|^$",
        reason="It reads secrets out of memory or cracks them.",
        match=("gcore 4242", "john hashes"),
        spare=("keyctl show",),
    ),
    _rule(
        id="secret.hunt",
        programs="grep egrep rg ag zgrep git",
        text=(
            r"(?:BEGIN (?:RSA |OPENSSH |EC )?PRIVATE KEY|AKIA\[|password\s*=).*\s(?:/|~|/home"
            r"|/etc|/root|\$HOME|/home/\S+)\s*$"
        ),
        reason="It looks for secrets outside the workspace.",
        match=("grep -r 'BEGIN RSA PRIVATE KEY' /home",),
        spare=("grep -rn 'BEGIN RSA PRIVATE KEY' src/",),
    ),
)

PLACES: tuple[PlaceRule, ...] = (
    _place(
        id="secret.read",
        kinds="read",
        places="secret folder",
        spares="ls stat test chmod ssh-keygen rsync-list",
        inside=True,
        reason="It reads credentials.",
        alternative="Ask for the value that is needed, or use a template without secrets.",
        match=(
            "cat ~/.ssh/id_rsa",
            "cat .env",
            "grep SECRET .env.production",
            "head -50 ~/.netrc",
            "sudo cat /etc/shadow",
            r"cat /proc/1/environ | tr '\0' '\n'",
            "tar czf keys.tgz ~/.ssh ~/.gnupg",
        ),
        spare=(
            "cat .env.example",
            "ls -la .env*",
            "cat ~/.ssh/id_ed25519.pub",
            "grep -rn 'id_rsa' docs/",
            "echo .env >> .gitignore",
            "test -f .env && echo present",
            "cp .env.example .env",
        ),
    ),
)
