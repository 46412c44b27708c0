-- Times are RFC 3339 UTC text with microseconds, so that they sort as text. JSON columns hold objects or arrays.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE sessions (
    key          TEXT PRIMARY KEY,             -- http:USER/NAME, telegram:CHAT[:TOPIC], slack:TEAM:CHANNEL[:THREAD]
    name         TEXT NOT NULL,                -- as its owner names it over HTTP; equal to key for chats
    adapter      TEXT NOT NULL,
    owner        TEXT,                         -- principal of a direct or named session, NULL in groups
    scope        TEXT NOT NULL,
    conversation TEXT NOT NULL,                -- JSON: where answers go
    title        TEXT NOT NULL DEFAULT '',
    history_from INTEGER NOT NULL DEFAULT 0,   -- only messages with a greater id count; moved by /new
    events_purged INTEGER NOT NULL DEFAULT 0,  -- newest event that was cleaned away: older readers must start anew
    created_at   TEXT NOT NULL,
    last_at      TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_owner ON sessions (owner, last_at);

-- The queue. A row is kept for 7 days after it was handled: its event_key is the memory of what was seen.
CREATE TABLE inbox (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    event_key   TEXT NOT NULL UNIQUE,
    session     TEXT NOT NULL,
    principal   TEXT NOT NULL,
    role        TEXT NOT NULL,
    sender      TEXT NOT NULL,                 -- JSON
    text        TEXT NOT NULL,
    message_ref TEXT NOT NULL,
    reply_to    TEXT NOT NULL DEFAULT '',
    attachments TEXT NOT NULL DEFAULT '[]',
    mergeable   INTEGER NOT NULL DEFAULT 0,
    control     INTEGER NOT NULL DEFAULT 0,    -- a word of control: never waits behind a turn
    state       TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'taken', 'done', 'dropped')),
    turn        TEXT,
    reply       TEXT,                          -- answer to a word of control
    received_at TEXT NOT NULL
);
CREATE INDEX inbox_queue ON inbox (session, control, id) WHERE state = 'queued';
CREATE INDEX inbox_ref ON inbox (session, message_ref);
CREATE INDEX inbox_turn ON inbox (turn) WHERE turn IS NOT NULL;

CREATE TABLE dead_letters (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    platform    TEXT NOT NULL,
    event_key   TEXT NOT NULL,
    raw         BLOB NOT NULL,
    reason      TEXT NOT NULL,
    received_at TEXT NOT NULL,
    UNIQUE (platform, event_key)
);

CREATE TABLE turns (
    id           TEXT PRIMARY KEY,
    session      TEXT NOT NULL,
    principal    TEXT NOT NULL,                -- the one principal of the turn
    role         TEXT NOT NULL,
    state        TEXT NOT NULL DEFAULT 'running'
                 CHECK (state IN ('running', 'done', 'failed', 'cancelled')),
    iterations   INTEGER NOT NULL DEFAULT 0,
    crash_count  INTEGER NOT NULL DEFAULT 0,   -- starts of the daemon that found it unfinished after a crash
    live_message TEXT,                         -- JSON: reference of the live-edited message, stored before its first edit
    started_at   TEXT NOT NULL,
    ended_at     TEXT
) WITHOUT ROWID;
CREATE UNIQUE INDEX turns_running ON turns (session) WHERE state = 'running';
CREATE INDEX turns_session ON turns (session, started_at);

CREATE TABLE messages (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    turn    TEXT NOT NULL,
    role    TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    text    TEXT NOT NULL,
    call_id TEXT,                              -- role tool: the call that it answers
    ok      INTEGER NOT NULL DEFAULT 1,
    final   INTEGER NOT NULL DEFAULT 0,        -- the assistant message that ends its turn
    status  TEXT NOT NULL DEFAULT 'done',      -- of final messages: done, failed or cancelled
    at      TEXT NOT NULL
);
CREATE INDEX messages_session ON messages (session, id);
CREATE INDEX messages_turn ON messages (turn, id);
CREATE UNIQUE INDEX messages_call ON messages (call_id) WHERE call_id IS NOT NULL;

CREATE TABLE tool_calls (
    id         TEXT PRIMARY KEY,               -- the request id
    session    TEXT NOT NULL,
    turn       TEXT NOT NULL,
    message    INTEGER NOT NULL,               -- the assistant message that made it
    position   INTEGER NOT NULL,
    name       TEXT NOT NULL,
    arguments  TEXT NOT NULL,                  -- as the model wrote it
    state      TEXT NOT NULL DEFAULT 'planned' CHECK (state IN ('planned', 'started', 'ended', 'answered')),
    result     TEXT,                           -- kept from the outcome until the answer is a message
    exit_code  INTEGER,
    started_at TEXT,
    ended_at   TEXT
) WITHOUT ROWID;
CREATE INDEX tool_calls_message ON tool_calls (message, position);
CREATE INDEX tool_calls_turn ON tool_calls (turn);

-- Requests to people. state changes once, away from 'pending'.
CREATE TABLE asks (
    id             TEXT PRIMARY KEY,           -- unguessable, single use
    code           TEXT NOT NULL,              -- for typed answers; unique among the open asks of its chat
    kind           TEXT NOT NULL CHECK (kind IN ('approval', 'token', 'line', 'question')),
    session        TEXT NOT NULL,
    turn           TEXT NOT NULL,
    request_id     TEXT NOT NULL,
    digest         TEXT NOT NULL,
    digest_version INTEGER NOT NULL,
    evidence       TEXT NOT NULL DEFAULT '',
    title          TEXT NOT NULL,
    command        TEXT NOT NULL,
    reason         TEXT NOT NULL,
    rules          TEXT NOT NULL,              -- JSON array
    impact         TEXT NOT NULL DEFAULT '',
    token          TEXT NOT NULL DEFAULT '',
    choices        TEXT NOT NULL,              -- JSON array of values
    grants         TEXT NOT NULL DEFAULT '[]', -- JSON array of drafts
    requester      TEXT NOT NULL,
    requester_role TEXT NOT NULL,
    origin         TEXT NOT NULL DEFAULT '',
    need           INTEGER NOT NULL DEFAULT 1, -- distinct people who must approve
    shown          TEXT NOT NULL DEFAULT '[]', -- JSON array of message references where the card stands
    state          TEXT NOT NULL DEFAULT 'pending' CHECK (state IN
                   ('pending', 'approved', 'denied', 'timed_out', 'cancelled', 'undeliverable', 'answered')),
    choice         TEXT,
    answer         TEXT,
    settled_by     TEXT,
    deny_reason    TEXT NOT NULL DEFAULT '',
    created_at     TEXT NOT NULL,
    expires_at     TEXT NOT NULL,              -- UTC wall time; the monotonic remainder is re-armed at start
    settled_at     TEXT
) WITHOUT ROWID;
CREATE INDEX asks_open ON asks (session) WHERE state = 'pending';
CREATE INDEX asks_turn ON asks (turn, digest);
CREATE INDEX asks_request ON asks (request_id);

CREATE TABLE ask_votes (
    ask       TEXT NOT NULL,
    principal TEXT NOT NULL,
    at        TEXT NOT NULL,
    PRIMARY KEY (ask, principal)
) WITHOUT ROWID;

-- Grants of a session; permanent ones are in allowlist.json.
CREATE TABLE grants (
    id         TEXT PRIMARY KEY,
    session    TEXT NOT NULL,
    boot       TEXT NOT NULL,                  -- run of the daemon; session grants end with it
    principal  TEXT NOT NULL,
    rule       TEXT NOT NULL,
    shape      TEXT NOT NULL,
    paths      TEXT NOT NULL,                  -- JSON array
    given_by   TEXT NOT NULL,
    at         TEXT NOT NULL,
    expires    TEXT NOT NULL,
    uses_left  INTEGER,
    revoked_at TEXT
) WITHOUT ROWID;
CREATE INDEX grants_session ON grants (session, boot);

-- The chain. body is redacted JSON; text_digest is the keyed digest of the full text beside it.
CREATE TABLE audit (
    seq         INTEGER PRIMARY KEY,
    at          TEXT NOT NULL,
    kind        TEXT NOT NULL,                 -- decision, start, outcome, and others (grant, revoke, config ...)
    request_id  TEXT NOT NULL DEFAULT '',
    body        TEXT NOT NULL,
    text_digest TEXT NOT NULL,
    hash        TEXT NOT NULL                  -- HMAC-SHA-256 over the row before, and this row
);
CREATE INDEX audit_request ON audit (request_id);

-- Full texts; erasable without breaking the chain.
CREATE TABLE audit_texts (
    seq   INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    text  TEXT NOT NULL
);

-- Messages to platforms that the gateway pushes to, one row a part, in order of id within a conversation.
CREATE TABLE outbox (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    part_id      TEXT NOT NULL UNIQUE,
    adapter      TEXT NOT NULL,
    lane         TEXT NOT NULL,                -- adapter and chat; order is kept within a lane
    conversation TEXT NOT NULL,                -- JSON
    session      TEXT NOT NULL,
    turn         TEXT,
    kind         TEXT NOT NULL CHECK (kind IN ('text', 'card', 'card_end')),
    body         TEXT NOT NULL,                -- text: markdown; card and card_end: JSON with the ask's id
    state        TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sending', 'sent', 'dead')),
    uncertain    INTEGER NOT NULL DEFAULT 0,   -- an attempt may have arrived; the next one is marked
    attempts     INTEGER NOT NULL DEFAULT 0,
    next_at      TEXT NOT NULL,
    sent_ref     TEXT,                         -- JSON
    error        TEXT,
    created_at   TEXT NOT NULL,
    sent_at      TEXT
);
CREATE INDEX outbox_open ON outbox (lane, id) WHERE state IN ('pending', 'sending');
CREATE INDEX outbox_age ON outbox (sent_at);

-- What clients of a session's stream are told, kept for reconnects.
CREATE TABLE events (
    id      INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    turn    TEXT,
    type    TEXT NOT NULL,
    data    TEXT NOT NULL,
    at      TEXT NOT NULL
);
CREATE INDEX events_session ON events (session, id);
