"""Rules that span several keys, and the keys that this version carries without using them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from gateway import config_tree
from gateway.config import ANYBODY, Config
from gateway.exceptions import Problem

#: Keys (or whole sections) of features that are not in this version.
LATER: Mapping[str, str] = {
    "model.fallback": "fallback models",
    "agent.child_max_turns": "delegation to children",
    "agent.max_children": "delegation to children",
    "agent.heartbeat_s": "delegation to children",
    "agent.child_idle_s": "delegation to children",
    "agent.child_tool_s": "delegation to children",
    "gateway.give_up_s": "giving up on adapters",
    "approvals.token_s": "confirmation by token",
    "approvals.question_s": "questions of the agent",
    "approvals.judge": "approval by an auxiliary model",
    "approvals.chat": "an approvals chat",
    "limits.validation_s": "commands of the catalog",
    "limits.sandbox_start_s": "the container engine",
    "sandbox.image": "the container engine",
    "sandbox.docker_host": "the container engine",
    "sandbox.ssh": "the ssh engine",
    "skills": "skills",
    "profile": "the profile",
    "takeover": "takeover by a person",
    "trash": "the trash",
    "access.pairing": "pairing",
    "adapters.slack": "Slack",
    "mcp": "MCP servers",
    "schedule": "scheduled jobs",
    "webhooks": "webhooks",
}

#: Values of keys that are otherwise in use, and what happens instead.
LATER_VALUES: Mapping[tuple[str, str], str] = {
    ("gateway.busy", "steer"): "messages are queued",
    ("gateway.busy", "interrupt"): "messages are queued",
    ("approvals.mode", "smart"): "a person is asked every time",
    ("approvals.mode", "off"): "a person is asked every time",
    ("sandbox.engine", "container"): "commands are refused",
    ("sandbox.engine", "ssh"): "commands are refused",
    ("sandbox.network", "ask"): "commands have no network",
}

#: As BotFather gives them.
_TELEGRAM_TOKEN = re.compile(r"\d{1,20}:[A-Za-z0-9_-]{1,128}", re.ASCII)
_TELEGRAM_USER = re.compile(r"\d{1,20}", re.ASCII)
#: The user of the home's own token.
OWNER = "owner"

#: Model providers that this version can speak to.
PROVIDERS = ("offline",)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check(config: Config, origins: Mapping[str, str]) -> list[Problem]:
    """What is wrong between the keys of a configuration whose every value is right by itself."""
    return [
        Problem(_place(origins, broken.keys), broken.keys[0], broken.reason, broken.hint) for broken in _broken(config)
    ]


def later(key: str) -> str:
    """The feature that ``key`` waits for; empty where this version uses it."""
    return next((text for name, text in LATER.items() if key == name or key.startswith(name + ".")), "")


def ineffective(config: Config, origins: Mapping[str, str]) -> list[str]:
    """Sentences about what the owner has set and what this version does not do yet.

    Args:
        config: a valid configuration.
        origins: dotted key to place; ``default`` for what nobody has set.
    """
    sentences = []
    for leaf in config_tree.leaves():
        place = origins.get(leaf.key, "default")
        if place == "default":
            continue
        feature = later(leaf.key)
        value = config_tree.value_at(config, leaf.path)
        if feature:
            sentences.append(f"{leaf.key} ({place}) has no effect: {feature}: not in this version")
        elif isinstance(value, str) and (leaf.key, value) in LATER_VALUES:
            instead = LATER_VALUES[leaf.key, value]
            sentences.append(f"{leaf.key} ({place}): `{value}` is not in this version; {instead}")
    return sentences


class _Broken(NamedTuple):
    """A rule that does not hold; the first key is the one to name."""

    keys: tuple[str, ...]
    reason: str
    hint: str = ""


_Rule = Callable[[Config], Iterator[_Broken]]


def _place(origins: Mapping[str, str], keys: tuple[str, ...]) -> str:
    """Where the first of the keys stands that somebody has set."""
    places = [origins.get(key, "default") for key in keys]
    return next((place for place in places if place != "default"), "default")


def _broken(config: Config) -> Iterator[_Broken]:
    rules: tuple[_Rule, ...] = (_ordered, _http, _telegram, _approvals, _model)
    for rule in rules:
        yield from rule(config)


def _ordered(config: Config) -> Iterator[_Broken]:
    """Limits that contain each other."""
    agent, gateway, limits = config.agent, config.gateway, config.limits
    for key, inner, outer_key, outer, strict in (
        ("limits.terminal_s", limits.terminal_s, "limits.terminal_max_s", limits.terminal_max_s, False),
        ("gateway.inactivity_warn_s", gateway.inactivity_warn_s, "gateway.inactivity_cancel_s",
         gateway.inactivity_cancel_s, True),
        ("agent.child_max_turns", agent.child_max_turns, "agent.max_turns", agent.max_turns, False),
        ("agent.heartbeat_s", agent.heartbeat_s, "agent.child_idle_s", agent.child_idle_s, True),
        ("agent.child_idle_s", agent.child_idle_s, "agent.child_tool_s", agent.child_tool_s, False),
    ):  # fmt: skip
        if inner > outer or (strict and inner == outer):
            relation = "less than" if strict else "at most"
            reason = f"is {inner:g}, but must be {relation} {outer_key}, which is {outer:g}"
            yield _Broken((key, outer_key), reason)


def _http(config: Config) -> Iterator[_Broken]:
    http = config.adapters.http
    if not http.tokens and not is_loopback(http.host):
        yield _Broken(
            ("adapters.http.host",),
            "is an address that others can reach, and no token is configured",
            "set adapters.http.tokens to [{token: ..., user: ...}], or bind 127.0.0.1",
        )
    tokens = [token.token for token in http.tokens]
    if len(set(tokens)) < len(tokens):
        yield _Broken(
            ("adapters.http.tokens",), "two entries have the same token", "give each user a token of their own"
        )
    rights = {OWNER: frozenset({"admin"})}
    for place, token in enumerate(http.tokens):
        if rights.setdefault(token.user, frozenset(token.roles)) != frozenset(token.roles):
            yield _Broken(
                (f"adapters.http.tokens[{place}].roles",),
                f"gives {token.user} other roles than elsewhere; rights belong to the person, not to the token",
                "give the same roles to each token of a user; `owner` is always admin",
            )
        if not token.token.strip():
            yield _Broken((f"adapters.http.tokens[{place}].token",), "is blank", "put a long random text there")


def _telegram(config: Config) -> Iterator[_Broken]:
    telegram = config.adapters.telegram
    for user in telegram.allowed_users:
        if user != ANYBODY and not _TELEGRAM_USER.fullmatch(user):
            yield _Broken(
                ("adapters.telegram.allowed_users",),
                f"has `{user}`, which is no numeric user id",
                "names can be taken over by others, ids cannot; @userinfobot tells yours",
            )
    if not telegram.enabled:
        return
    if not _TELEGRAM_TOKEN.fullmatch(telegram.token):
        yield _Broken(
            ("adapters.telegram.token", "adapters.telegram.enabled"),
            "is not a bot's token" if telegram.token else "is missing",
            "BotFather shows it, as 123456:ABC...",
        )
    if telegram.base_url and not re.fullmatch(r"https?://[^\s?#]+/bot", telegram.base_url):
        yield _Broken(
            ("adapters.telegram.base_url",), "is not an address that ends in /bot", "as http://127.0.0.1:8081/bot"
        )
    if telegram.webhook.enabled:
        yield from _telegram_webhook(config)


def _telegram_webhook(config: Config) -> Iterator[_Broken]:
    webhook = config.adapters.telegram.webhook
    if not re.fullmatch(r"https://[^\s/?#]+/[^\s?#]+", webhook.url):
        yield _Broken(
            ("adapters.telegram.webhook.url", "adapters.telegram.webhook.enabled"),
            "is not a public https address with a path",
            "as https://bot.example.org/telegram",
        )
    elif (name := urlsplit(webhook.url).hostname) not in {
        urlsplit(f"//{host}").hostname for host in config.adapters.http.allowed_hosts
    }:
        yield _Broken(
            ("adapters.http.allowed_hosts", "adapters.telegram.webhook.url"),
            f"does not have {name}, under which Telegram calls",
            f"as [{name}, localhost, 127.0.0.1]",
        )
    if not re.fullmatch(r"[A-Za-z0-9_-]{16,256}", webhook.secret):
        yield _Broken(
            ("adapters.telegram.webhook.secret", "adapters.telegram.webhook.enabled"),
            "must be 16 to 256 letters, digits, _ or -",
            "take a long random one",
        )


def _approvals(config: Config) -> Iterator[_Broken]:
    if config.approvals.mode == "off" and not config.approvals.i_understand:
        yield _Broken(
            ("approvals.mode",),
            "is `off`: nobody would be asked before something dangerous runs",
            "if you mean it, set approvals.i_understand to true as well",
        )


def _model(config: Config) -> Iterator[_Broken]:
    if config.model.provider not in PROVIDERS:
        yield _Broken(("model.provider",), "is a provider that this version cannot speak to yet", "use `offline`")
