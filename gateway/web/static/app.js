// The chat page: one session at a time, its history and stream, the list of sessions, and what waits for an answer.

import { Problem, Stream, call, path } from "./api.js";
import { Card } from "./cards.js";
import { Log } from "./log.js";
import { element } from "./text.js";

const PAGE = 50;
/** How often the lists are asked for while the page is seen, in ms: other sessions have no stream here. */
const LISTS_MS = 15_000;
/** A history is loaded anew at most once in this time, in ms. */
const RESET_MS = 5_000;
const SESSION = /^[A-Za-z0-9._:-]{1,128}$/;
const RESERVED = /^(telegram|slack|job|hook):/;

const $ = (id) => document.getElementById(id);
const log = new Log({ scroll: $("scroll"), log: $("log"), queued: $("queued"), latest: $("latest"), empty: $("empty") });

/** What is shown now. Replaced as a whole when another session is opened, so that late answers find nothing to change. */
let view = null;
/** Open cards of other sessions, by ask. */
const elsewhere = new Map();
/** What the running turn is doing. */
let activity = "";

// ---- one session

function open(session, { push = true } = {}) {
  view?.stream?.close();
  view = {
    session,
    stream: null,
    fresh: null, // whether no message was ever sent to it; null while unknown
    lastRow: 0,
    oldestRow: 0,
    seen: 0, // newest event that the history already holds
    cards: new Map(),
    echoes: new Map(), // messages sent from here that no turn has taken yet, by message_id
    running: false,
    turns: 0, // beginnings and ends of turns seen; a list that was asked for before the last one is stale
    resetAt: 0,
  };
  log.clear();
  setRunning(false);
  showConnection("");
  $("title").textContent = session;
  document.title = `${session} · Ostiary`;
  if (push && decodeURIComponent(location.hash.slice(1)) !== session) location.hash = encodeURIComponent(session);
  closeMenu();
  load(view).catch(failed);
  lists().catch(failed);
}

/** Show the history and follow the events that come after it. */
async function load(mine) {
  let history;
  try {
    if (mine.fresh === null) {
      const { sessions } = await call("GET", "/v1/sessions");
      mine.fresh = !RESERVED.test(mine.session) && !sessions.some((row) => row.session === mine.session);
    }
    if (view !== mine) return;
    if (mine.fresh) return started(mine);
    history = await call("GET", `${path(mine.session, "/messages")}?limit=${PAGE}`);
  } catch (problem) {
    if (view !== mine) return;
    if (problem.status === 404) {
      mine.fresh = true;
      return started(mine);
    }
    if (problem.status === 401) return locked();
    showConnection("The gateway cannot be reached. Trying again …");
    setTimeout(() => view === mine && load(mine).catch(failed), 3000);
    return;
  }
  if (view !== mine) return;
  showConnection("");
  render(mine, history);
  follow(mine);
}

/** Take part in what happens from `mine.seen` on. */
function follow(mine) {
  mine.stream?.close();
  mine.stream = new Stream(mine.session, mine.seen, {
    open: () => view === mine && showConnection(""),
    down: (seconds) => view === mine && showConnection(`Reconnecting in ${seconds} s …`),
    event: (type, data, id) => view === mine && happened(mine, type, data, id),
    ended: (status) => {
      if (view !== mine) return;
      if (status === 401) locked();
      else showConnection("This session does not exist any more.");
    },
  });
}

/** A session that comes into being with its first message. */
function started(mine) {
  $("empty").hidden = Boolean(mine.echoes.size);
  showConnection("");
}

function render(mine, history) {
  log.clear();
  mine.fresh = false;
  mine.seen = history.last_event_id;
  const rows = history.messages;
  for (const row of rows) showRow(row);
  mine.lastRow = rows.at(-1)?.id ?? 0;
  mine.oldestRow = rows[0]?.id ?? 0;
  $("earlier").hidden = rows.length < PAGE;
  $("empty").hidden = Boolean(rows.length);
  // Cards that are still open, those that this page had been told of included: a reload of the history keeps them.
  const open = new Map([...mine.cards.values()].filter((card) => !card.ended).map((card) => [card.ask.id, card.ask]));
  for (const ask of history.asks ?? []) open.set(ask.id, ask);
  mine.cards.clear();
  for (const ask of open.values()) showAsk(mine, ask);
  matchEchoes(mine, rows);
  for (const echo of mine.echoes.values()) echo.node = log.said(echo.text, { waiting: true });
  log.toEnd(true);
}

function showRow(row) {
  if (row.role === "user") log.said(row.text);
  else if (row.role === "assistant") log.answered(row.text, row.status);
}

/** Messages sent from here that the history holds by now need no echo. */
function matchEchoes(mine, rows) {
  const users = rows.filter((row) => row.role === "user");
  for (const [id, echo] of mine.echoes) {
    const index = users.findIndex((row) => row.id > echo.afterRow && row.text.trim() === echo.text.trim());
    if (index < 0) continue;
    users.splice(index, 1);
    mine.echoes.delete(id);
  }
}

async function earlier() {
  const mine = view;
  const page = await call("GET", `${path(mine.session, "/messages")}?limit=${PAGE}&before=${mine.oldestRow}`);
  if (view !== mine) return;
  $("earlier").hidden = page.messages.length < PAGE;
  mine.oldestRow = page.messages[0]?.id ?? mine.oldestRow;
  const before = $("scroll").scrollHeight;
  const shown = [...$("log").childNodes];
  for (const row of page.messages) showRow(row);
  $("log").append(...shown);
  $("scroll").scrollTop += $("scroll").scrollHeight - before;
}

// ---- events

function happened(mine, type, data, id) {
  switch (type) {
    case "turn.started":
      return began(mine, data);
    case "delta":
      setRunning(true);
      return log.streamed(data.text, data.replace);
    case "message":
      if (id && id <= mine.seen) return;
      return log.answered(data.text);
    case "tool":
      return log.tool(data.name, data.state);
    case "progress":
      return setActivity(data.text);
    case "notice":
      return log.notice(data.text);
    case "ask":
      return showAsk(mine, data);
    case "ask.settled":
      return settled(mine, data);
    case "turn.finished":
      return finished(mine, data);
    case "reset":
      if (Date.now() - mine.resetAt < RESET_MS) return;
      mine.resetAt = Date.now();
      return load(mine).catch(failed);
  }
}

function began(mine, { turn, message_id: id }) {
  mine.turns += 1;
  setRunning(true);
  const echo = mine.echoes.get(id);
  if (echo) {
    log.taken(echo.node);
    mine.echoes.delete(id);
  } else {
    // Sent from somewhere else: its text is in the history only.
    const place = log.append(element("div", "place"));
    call("GET", `${path(mine.session, "/messages")}?limit=20`)
      .then((page) => {
        if (view !== mine) return;
        for (const row of page.messages) if (row.role === "user" && row.turn === turn) log.said(row.text, { before: place });
      })
      .catch(failed)
      .finally(() => place.remove());
  }
  lists().catch(failed);
}

function finished(mine, { turn, status }) {
  mine.turns += 1;
  log.settled(turn, status);
  setRunning(false);
  lists().catch(failed);
}

function showAsk(mine, ask) {
  if (mine.cards.has(ask.id)) return;
  elsewhere.get(ask.id)?.node.remove();
  elsewhere.delete(ask.id);
  const card = new Card(ask);
  mine.cards.set(ask.id, card);
  log.append(card.node);
  showState();
}

function settled(mine, { id, outcome, choice, by }) {
  mine.cards.get(id)?.end(outcome, choice, by);
  elsewhere.get(id)?.end(outcome, choice, by);
  showState();
}

// ---- what is going on

function setRunning(running) {
  if (!running || !view.running) activity = running ? "Working …" : "";
  view.running = running;
  $("stop").hidden = !running;
  $("stop").disabled = false;
  showState();
}

function setActivity(text) {
  activity = text;
  showState();
}

function showState() {
  const waiting = [...view.cards.values()].some((card) => !card.ended);
  const state = waiting ? "waiting" : view.running ? "running" : "";
  $("state").dataset.state = state;
  $("state").textContent = { waiting: "waits for your answer", running: "working" }[state] ?? "";
  $("activity").hidden = waiting || !view.running;
  $("activity-text").textContent = activity;
}

function showConnection(text) {
  $("connection").hidden = !text;
  $("connection").textContent = text;
}

function locked() {
  view?.stream?.close();
  showConnection("You are logged out. Run “ostiary link” where Ostiary runs, and open the link that it prints.");
}

function failed(problem) {
  if (problem instanceof Problem) {
    if (problem.status === 401) locked();
  } else {
    throw problem;
  }
}

// ---- lists

async function lists() {
  const mine = view;
  const turns = mine.turns;
  const [{ sessions }, { asks }] = await Promise.all([call("GET", "/v1/sessions"), call("GET", "/v1/asks")]);
  if (view !== mine) return;
  showSessions(sessions);
  showElsewhere(asks);
  // After a reload the stream does not tell again that a turn had begun.
  const state = sessions.find((row) => row.session === mine.session)?.state ?? "idle";
  if (mine.turns === turns && mine.running !== (state !== "idle")) setRunning(state !== "idle");
}

function showSessions(sessions) {
  const rows = sessions.some((row) => row.session === view?.session)
    ? sessions
    : [{ session: view.session, title: "", state: "idle" }, ...sessions];
  $("sessions").replaceChildren(
    ...rows.map((row) => {
      const link = element("a", "", element("span", "name", row.session));
      if (row.title && row.title !== row.session) link.append(element("span", "subject", row.title));
      link.href = `#${encodeURIComponent(row.session)}`;
      link.dataset.state = row.state;
      if (row.state !== "idle") link.append(element("span", "unseen", row.state === "waiting" ? "waits for an answer" : "working"));
      if (row.session === view?.session) link.setAttribute("aria-current", "page");
      return element("li", "", link);
    }),
  );
}

/** Cards that this page's session does not show: of other sessions, of other people where one may answer for them. */
function showElsewhere(asks) {
  const open = new Set(asks.map((ask) => ask.id));
  for (const [id, card] of elsewhere) {
    if (open.has(id) || (card.ended && !card.old)) {
      card.old = card.ended; // an ended card stays until the next look
      continue;
    }
    card.node.remove();
    elsewhere.delete(id);
  }
  for (const ask of asks) {
    if (elsewhere.has(ask.id) || view.cards.has(ask.id)) continue;
    if (ask.session === view.session) {
      showAsk(view, ask);
      continue;
    }
    const card = new Card(ask, { where: ask.session ?? "" });
    elsewhere.set(ask.id, card);
    $("elsewhere-cards").append(card.node);
    // What belongs to no session that could be opened is only seen here.
    if (!ask.session) $("elsewhere").open = true;
  }
  $("elsewhere").hidden = !elsewhere.size;
  const many = [...elsewhere.values()].filter((card) => !card.ended).length;
  $("elsewhere-title").textContent = many
    ? `${many} more ${many === 1 ? "request waits" : "requests wait"} for your answer`
    : "Answered";
}

// ---- sending

async function send(text) {
  const mine = view;
  const id = newId();
  const busy = mine.running || mine.echoes.size > 0;
  const node = log.said(text, { waiting: busy && !text.startsWith("/") });
  mine.echoes.set(id, { text, node, afterRow: mine.lastRow });
  log.toEnd(true);
  await deliver(mine, id, text, node);
}

async function deliver(mine, id, text, node) {
  node.querySelector(".unsent")?.remove();
  try {
    await call("POST", path(mine.session, "/messages"), { text, message_id: id });
  } catch (problem) {
    if (view === mine) unsent(mine, id, text, node, problem);
    failed(problem);
    return;
  }
  if (view === mine && mine.fresh) {
    mine.fresh = false;
    follow(mine); // it has no history beside its events
  }
  lists().catch(failed);
}

/** The message stays, with what went wrong and a button; sending it again cannot make two of it. */
function unsent(mine, id, text, node, problem) {
  const wait = problem.retryAfter ? ` Try again in ${problem.retryAfter} s.` : "";
  const again = element("button", "plain", "Send again");
  again.type = "button";
  const drop = element("button", "quiet", "Remove");
  drop.type = "button";
  const line = element("p", "unsent", element("span", "", `Not sent: ${problem.message}${wait}`), again, drop);
  again.addEventListener("click", () => deliver(mine, id, text, node).catch(failed));
  drop.addEventListener("click", () => {
    mine.echoes.delete(id);
    log.dropped(node);
  });
  node.append(line);
}

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `web-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

// ---- the page's own controls

const text = $("text");

function fit() {
  text.style.height = "auto";
  text.style.height = `${Math.min(text.scrollHeight + 2, innerHeight * 0.4)}px`;
}

$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const value = text.value;
  if (!value.trim()) return;
  text.value = "";
  fit();
  send(value).catch(failed);
});

text.addEventListener("input", fit);
text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $("composer").requestSubmit();
});

$("stop").addEventListener("click", async () => {
  $("stop").disabled = true;
  setActivity("Stopping …");
  try {
    await call("POST", path(view.session, "/stop"));
  } catch (problem) {
    $("stop").disabled = false;
    failed(problem);
  }
});

$("earlier").addEventListener("click", () => earlier().catch(failed));

$("new-session").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = $("new-name").value.trim();
  const hint = $("new-hint");
  hint.hidden = SESSION.test(name) && !RESERVED.test(name);
  if (!hint.hidden) {
    hint.textContent = RESERVED.test(name)
      ? "Names that begin so belong to other chats."
      : "Use letters, digits, and . _ : - without spaces.";
    return;
  }
  $("new-name").value = "";
  open(name);
  text.focus();
});

$("logout").addEventListener("click", async () => {
  await call("POST", "/logout").catch(failed);
  location.replace("/");
});

function closeMenu() {
  document.body.classList.remove("menu");
  $("shade").hidden = true;
  $("menu").setAttribute("aria-expanded", "false");
}

$("menu").addEventListener("click", () => {
  const shown = document.body.classList.toggle("menu");
  $("shade").hidden = !shown;
  $("menu").setAttribute("aria-expanded", String(shown));
  if (shown) $("new-name").focus();
});
$("shade").addEventListener("click", closeMenu);
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !document.body.classList.contains("menu")) return;
  closeMenu();
  $("menu").focus();
});

function named() {
  const name = decodeURIComponent(location.hash.slice(1));
  return SESSION.test(name) ? name : "main";
}

addEventListener("hashchange", () => {
  if (named() !== view?.session) open(named(), { push: false });
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) lists().catch(failed);
});

setInterval(() => {
  for (const card of view?.cards.values() ?? []) card.tick();
  for (const card of elsewhere.values()) card.tick();
}, 1000);
setInterval(() => {
  if (!document.hidden) lists().catch(failed);
}, LISTS_MS);

open(named(), { push: false });
if (matchMedia("(pointer: fine)").matches) text.focus();
