"""The one schema of the configuration: every key, its type, its bounds and its default.

Values come from :mod:`gateway.config_loader`; rules that span several keys are in :mod:`gateway.config_rules`. The
``Attributes`` of the sections are also the text of ``docs/configuration.md``.
"""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

#: In a list of users: everybody.
ANYBODY = "*"

#: Marks a leaf that is never printed, logged or put into an error.
SECRET = {"secret": True}

Secret = Annotated[str, Meta(extra=SECRET)]
#: A year bounds every wait; also keeps infinity and not-a-number out.
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)]
WholeSeconds = Annotated[int, Meta(ge=1, le=31_536_000)]
SecondsOrZero = Annotated[float, Meta(ge=0, le=31_536_000)]
Count = Annotated[int, Meta(ge=1)]
Role = Literal["viewer", "user", "operator", "admin"]

#: Sections whose shape belongs to a feature of their own; may hold credentials, so they are masked as a whole.
FreeForm = Annotated[dict[str, dict[str, Any]], Meta(extra=SECRET)]
FreeList = Annotated[tuple[dict[str, Any], ...], Meta(extra=SECRET)]


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section of the configuration."""


class FallbackModel(Section, frozen=True, kw_only=True):
    """A model that is asked when those before it fail.

    Attributes:
        provider: as `model.provider`.
        name: as `model.name`.
        base_url: as `model.base_url`.
        api_key: as `model.api_key`.
    """

    provider: Literal["offline", "openai", "anthropic"]
    name: str = ""
    base_url: str = ""
    api_key: Secret = ""


class Model(Section, frozen=True, kw_only=True):
    """The model that thinks.

    Attributes:
        provider: `offline` needs no network and no key; `openai` speaks to any OpenAI-compatible server.
        name: the model's name at the provider.
        base_url: the server; empty for the provider's own.
        api_key: the key for the server.
        max_output_tokens: longest answer of one request.
        request_s: limit of a request that cannot stream.
        fallback: models to try in this order when the first fails.
    """

    provider: Literal["offline", "openai", "anthropic"] = "offline"
    name: str = ""
    base_url: str = ""
    api_key: Secret = ""
    max_output_tokens: Count = 4096
    request_s: Seconds = 600
    fallback: tuple[FallbackModel, ...] = ()


class Agent(Section, frozen=True, kw_only=True):
    """One conversation turn.

    Attributes:
        max_turns: model iterations of one turn, children included.
        child_max_turns: model iterations of one child.
        max_children: children that run at once.
        heartbeat_s: how often a child tells its parent of progress.
        child_idle_s: a child without progress for so long is cancelled.
        child_tool_s: the same while it is inside one tool.
        language: language of the gateway's own sentences.
    """

    max_turns: Annotated[int, Meta(ge=1, le=200)] = 90
    child_max_turns: Annotated[int, Meta(ge=1, le=200)] = 15
    max_children: Count = 3
    heartbeat_s: Seconds = 30
    child_idle_s: Seconds = 300
    child_tool_s: Seconds = 1200
    language: Literal["auto", "en", "zh"] = "auto"


class Gateway(Section, frozen=True, kw_only=True):
    """Sessions and their queues.

    Attributes:
        busy: what a message does that arrives while a turn runs.
        queue_max: messages that may wait in one session; more are answered "busy".
        max_running_turns: turns that work at once; one that waits for a person does not count.
        inactivity_warn_s: a turn without progress for so long is reported in its chat.
        inactivity_cancel_s: a turn without progress for so long is cancelled and its processes killed.
        drain_s: how long a stop waits for turns that work; keep it below the service manager's limit.
        give_up_s: exit 1 after every adapter was down for so long; 0 never gives up.
    """

    busy: Literal["steer", "queue", "interrupt"] = "queue"
    queue_max: Count = 100
    max_running_turns: Count = 64
    inactivity_warn_s: Seconds = 900
    inactivity_cancel_s: Seconds = 1800
    drain_s: SecondsOrZero = 30
    give_up_s: SecondsOrZero = 0


class Judge(Section, frozen=True, kw_only=True):
    """The auxiliary model of approval mode `smart`.

    Attributes:
        provider: as `model.provider`; empty for the same as the model.
        name: the model's name at the provider.
    """

    provider: Literal["", "offline", "openai", "anthropic"] = ""
    name: str = ""


class Approvals(Section, frozen=True, kw_only=True):
    """Questions to people.

    Attributes:
        mode: `manual` asks a person; `smart` asks an auxiliary model first; `off` asks nobody.
        timeout_s: an approval without an answer is denied after so long.
        token_s: the same for a token that must be typed.
        question_s: the same for a question of the agent.
        i_understand: must be true for mode `off`.
        judge: see below.
        chat: the chat that also gets every card, `telegram:CHAT` or `slack:TEAM:CHANNEL`.
    """

    mode: Literal["manual", "smart", "off"] = "manual"
    timeout_s: Seconds = 300
    token_s: Seconds = 120
    question_s: Seconds = 3600
    i_understand: bool = False
    judge: Judge = Judge()
    chat: str = ""


class Limits(Section, frozen=True, kw_only=True):
    """Limits of single steps.

    Attributes:
        model_silence_s: a model stream without an event for so long is given up.
        validation_s: longest validation of a request.
        sandbox_start_s: longest start of a sandbox.
        read_s: longest run of a command that only reads.
        write_s: longest run of a command that writes or cleans.
        terminal_s: limit of a terminal command that names none.
        terminal_max_s: the longest limit that a terminal command may name.
        output_bytes: output kept of one command; head and tail stay, the middle goes.
    """

    model_silence_s: Seconds = 45
    validation_s: Seconds = 5
    sandbox_start_s: Seconds = 30
    read_s: Seconds = 10
    write_s: Seconds = 60
    terminal_s: WholeSeconds = 120
    terminal_max_s: WholeSeconds = 1200
    output_bytes: Annotated[int, Meta(ge=1024, le=16_777_216)] = 65_536


class Mount(Section, frozen=True, kw_only=True):
    """A directory of the host that commands see at its own path.

    Attributes:
        path: absolute path.
        writable: whether commands may write there.
    """

    path: Annotated[str, Meta(pattern=r"^/")]
    writable: bool = False


class Ssh(Section, frozen=True, kw_only=True):
    """The host of engine `ssh`.

    Attributes:
        host: name or address.
        user: a restricted user there.
        key: path of the private key.
    """

    host: str = ""
    user: str = ""
    key: str = ""


class Sandbox(Section, frozen=True, kw_only=True):
    """Where commands run.

    Attributes:
        engine: `auto` takes bubblewrap, else a container; never the bare host.
        required: not ready without a working engine.
        uid: the user that a root daemon starts sandboxes as.
        max_running: sandboxes at once; the default is two a core.
        image: image of engine `container`.
        docker_host: socket of engine `container`; empty for `DOCKER_HOST`.
        network: `ask` shows it on the card, `on` always shares the host's network.
        memory_mb: memory of one command and its children, in MiB.
        pids: processes of one command.
        cpus: processors of one command.
        disk_mb: what one command may write, in MiB.
        mounts: directories of the host that commands see.
        ssh: see below.
    """

    engine: Literal["auto", "bubblewrap", "container", "ssh"] = "auto"
    required: bool = False
    uid: Annotated[int, Meta(ge=1, le=4_294_967_294)] = 65_534
    max_running: Count = 2 * len(os.sched_getaffinity(0))
    image: str = ""
    docker_host: str = ""
    network: Literal["off", "ask", "on"] = "off"
    memory_mb: Annotated[int, Meta(ge=16)] = 512
    pids: Annotated[int, Meta(ge=4)] = 128
    cpus: Annotated[float, Meta(gt=0, le=4096)] = 1.0
    disk_mb: Count = 1024
    mounts: tuple[Mount, ...] = ()
    ssh: Ssh = Ssh()


class Skills(Section, frozen=True, kw_only=True):
    """Skills that the agent writes.

    Attributes:
        creation_nudge_interval: tool iterations between background reviews.
        review_max_turns: model iterations of one review.
    """

    creation_nudge_interval: Count = 10
    review_max_turns: Count = 8


class Profile(Section, frozen=True, kw_only=True):
    """What is remembered of how a person works.

    Attributes:
        rounds: updated after so many rounds.
        retention_days: days until it is archived.
    """

    rounds: Count = 5
    retention_days: Count = 30


class Takeover(Section, frozen=True, kw_only=True):
    """When a person takes over.

    Attributes:
        validation_failures: after so many failed validations in a row.
        dissatisfactions: after so many signs of dissatisfaction in a row.
        queue_chat: the operators' chat.
    """

    validation_failures: Count = 3
    dissatisfactions: Count = 2
    queue_chat: str = ""


class Trash(Section, frozen=True, kw_only=True):
    """Deletions that can be undone.

    Attributes:
        keep_h: hours until the space is freed.
    """

    keep_h: Annotated[float, Meta(gt=0, le=8760)] = 24


class Access(Section, frozen=True, kw_only=True):
    """People who are not known yet.

    Attributes:
        pairing: offer them a pairing code; else they get silence.
    """

    pairing: bool = True


class Store(Section, frozen=True, kw_only=True):
    """The database.

    Attributes:
        synchronous: `full` survives a power cut; `normal` may lose the last moment then.
    """

    synchronous: Literal["full", "normal"] = "full"


class HttpToken(Section, frozen=True, kw_only=True):
    """A bearer token and whom it stands for.

    Attributes:
        token: the secret.
        user: the principal becomes `http:USER`.
        roles: where no `policy.yaml` exists.
    """

    token: Annotated[str, Meta(min_length=1, extra=SECRET)]
    user: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._@-]{1,64}$")]
    roles: tuple[Role, ...] = ("admin",)


class Http(Section, frozen=True, kw_only=True):
    """Chat over HTTP, and the address of the one listener (health, metrics and page are always served).

    Attributes:
        enabled: chat over HTTP.
        host: address to bind; one that is not loopback needs `tokens`.
        port: TCP port; 0 takes a free one.
        tokens: list of `{token, user, roles}`.
        allowed_hosts: accepted `Host` names beside loopback names and the bound address.
        cookie_days: how long a browser stays logged in.
    """

    enabled: bool = True
    host: Annotated[str, Meta(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8642
    tokens: tuple[HttpToken, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    cookie_days: Annotated[float, Meta(gt=0, le=400)] = 30


class TelegramWebhook(Section, frozen=True, kw_only=True):
    """Updates by webhook instead of long polling.

    Attributes:
        enabled: use it.
        url: the public address, whose path the listener serves.
        secret: proves that a request is Telegram's; 16 to 256 letters, digits, `_` or `-`.
    """

    enabled: bool = False
    url: str = ""
    secret: Secret = ""


class Telegram(Section, frozen=True, kw_only=True):
    """Chat over Telegram.

    Attributes:
        enabled: use it.
        token: the bot's token.
        base_url: the part before the token, for an API server of your own, as `http://127.0.0.1:8081/bot`.
        allowed_users: numeric user ids; `*` lets everybody in with role `user`.
        require_mention: in groups, answer only when mentioned or replied to.
        webhook: see below.
    """

    enabled: bool = False
    token: Secret = ""
    base_url: str = ""
    allowed_users: tuple[str, ...] = ()
    require_mention: bool = True
    webhook: TelegramWebhook = TelegramWebhook()


class Slack(Section, frozen=True, kw_only=True):
    """Chat over Slack.

    Attributes:
        enabled: use it.
        mode: `socket` needs no public address; `events` arrive at `POST /slack/events`.
        bot_token: `xoxb-...`.
        app_token: `xapp-...`, for mode `socket`.
        signing_secret: for mode `events`.
        base_url: ends in `/api/`, for a server of your own.
        allowed_users: platform ids; `*` lets everybody in.
        require_mention: in channels, answer only when mentioned.
    """

    enabled: bool = False
    mode: Literal["socket", "events"] = "socket"
    bot_token: Secret = ""
    app_token: Secret = ""
    signing_secret: Secret = ""
    base_url: str = ""
    allowed_users: tuple[str, ...] = ()
    require_mention: bool = True


class Adapters(Section, frozen=True, kw_only=True):
    """Where people write.

    Attributes:
        http: see below.
        telegram: see below.
        slack: see below.
    """

    http: Http = Http()
    telegram: Telegram = Telegram()
    slack: Slack = Slack()


class Log(Section, frozen=True, kw_only=True):
    """The log on standard error.

    Attributes:
        format: `auto` is `console` on a terminal, else `json`.
        level: the least severe level that is written.
    """

    format: Literal["auto", "console", "json"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"


class Mcp(Section, frozen=True, kw_only=True):
    """Servers of the Model Context Protocol.

    Attributes:
        servers: one section a server, by name.
    """

    servers: FreeForm = {}


class Schedule(Section, frozen=True, kw_only=True):
    """Work at set times.

    Attributes:
        jobs: one entry a job.
    """

    jobs: FreeList = ()


class Webhooks(Section, frozen=True, kw_only=True):
    """Messages from other systems.

    Attributes:
        routes: one entry a route under `/hooks/`.
    """

    routes: FreeList = ()


class Config(Section, frozen=True, kw_only=True):
    """The whole configuration."""

    model: Model = Model()
    agent: Agent = Agent()
    gateway: Gateway = Gateway()
    approvals: Approvals = Approvals()
    limits: Limits = Limits()
    sandbox: Sandbox = Sandbox()
    skills: Skills = Skills()
    profile: Profile = Profile()
    takeover: Takeover = Takeover()
    trash: Trash = Trash()
    access: Access = Access()
    store: Store = Store()
    adapters: Adapters = Adapters()
    log: Log = Log()
    mcp: Mcp = Mcp()
    schedule: Schedule = Schedule()
    webhooks: Webhooks = Webhooks()
