"""From the configuration to the platforms that are pushed to: their adapters, and who may write there."""

from __future__ import annotations

import structlog

from adapters.base import Adapter
from agent.control.clock import Clock
from agent.control.ports import Role
from gateway.config import ANYBODY, Config, Telegram

log = structlog.get_logger(__name__)


def build(settings: Config, clock: Clock) -> list[Adapter]:
    """The adapters that are enabled. Imports them, so it belongs into a worker thread."""
    adapters: list[Adapter] = []
    if settings.adapters.telegram.enabled:
        adapters.append(_telegram(settings.adapters.telegram, clock))
    return adapters


def people(settings: Config) -> dict[str, dict[str, Role]]:
    """Roles by platform and stable id, where no policy file exists: who is listed by id is an admin."""
    telegram = settings.adapters.telegram
    if not telegram.enabled:
        return {}
    listed = {user: Role.ADMIN for user in telegram.allowed_users if user != ANYBODY}
    if not listed and ANYBODY not in telegram.allowed_users:
        log.warning("telegram_serves_nobody", fix="set adapters.telegram.allowed_users")
    return {"telegram": listed}


def everyone(settings: Config) -> dict[str, Role]:
    """Roles of anybody else, by platform, where the owner lets everybody in."""
    telegram = settings.adapters.telegram
    if not telegram.enabled or ANYBODY not in telegram.allowed_users:
        return {}
    log.warning("anybody_may_write", platform="telegram", role="user", setting="adapters.telegram.allowed_users")
    return {"telegram": Role.USER}


def _telegram(section: Telegram, clock: Clock) -> Adapter:
    from adapters.telegram.adapter import TelegramAdapter  # noqa: PLC0415 - only when enabled
    from adapters.telegram.settings import PUBLIC_API, Command, TelegramSettings, Webhook  # noqa: PLC0415
    from gateway.slash.control import ALL  # noqa: PLC0415

    webhook = section.webhook
    return TelegramAdapter(
        TelegramSettings(
            token=section.token,
            base_url=section.base_url or PUBLIC_API,
            require_mention=section.require_mention,
            commands=tuple(Command(word.name, word.help) for word in ALL.values()),
            webhook=Webhook(webhook.url, webhook.secret) if webhook.enabled else None,
        ),
        clock,
    )
