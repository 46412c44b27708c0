// The conversation as it is shown: messages, the text that streams in, tools, notices, and messages that wait.

import { element, prose } from "./text.js";

/** Longest pause between two redraws of streaming text, in ms: redrawing it for each piece would be quadratic. */
const REDRAW_MS = 80;

const STATUS = { failed: "This turn failed.", cancelled: "Stopped." };

export class Log {
  constructor({ scroll, log, queued, latest, empty }) {
    this.scroll = scroll;
    this.log = log;
    this.queued = queued;
    this.latest = latest;
    this.empty = empty;
    this.live = null;
    this.tools = new Map();
    this.pinned = true;
    scroll.addEventListener("scroll", () => this.watch(), { passive: true });
    latest.addEventListener("click", () => this.toEnd(true));
    new ResizeObserver(() => this.toEnd()).observe(scroll);
    new MutationObserver(() => this.toEnd()).observe(scroll, { childList: true, subtree: true, characterData: true });
  }

  clear() {
    this.log.replaceChildren();
    this.queued.replaceChildren();
    this.queued.hidden = true;
    this.live = null;
    this.tools.clear();
    this.pinned = true;
  }

  /** Add at the end: what streams in stays last. */
  append(node) {
    this.log.append(node);
    this.empty.hidden = true;
    return node;
  }

  /** A bubble with a person's text; `waiting` puts it below, among those that have not been taken yet. */
  said(text, { waiting = false, before = null } = {}) {
    const node = element("div", "message user", element("div", "bubble", prose(text)));
    node.setAttribute("aria-label", "You");
    this.empty.hidden = true;
    if (waiting) {
      node.classList.add("waits");
      this.queued.append(node);
      this.queued.hidden = false;
    } else if (before) {
      before.before(node);
    } else {
      this.append(node);
    }
    return node;
  }

  /** The turn of a waiting message began: it takes its place in the conversation. */
  taken(node) {
    if (node.parentNode !== this.queued) return;
    node.classList.remove("waits");
    this.append(node);
    this.queued.hidden = !this.queued.children.length;
  }

  dropped(node) {
    node.remove();
    this.queued.hidden = !this.queued.children.length;
  }

  /** A complete message of the assistant's; it replaces what was streamed. */
  answered(text, status = "done") {
    const node = this.live?.node ?? this.append(element("div", "message assistant"));
    clearTimeout(this.live?.timer);
    this.live = null;
    node.classList.remove("live");
    node.removeAttribute("aria-busy");
    node.replaceChildren(prose(text));
    if (STATUS[status] && STATUS[status] !== text.trim()) node.append(element("p", "status", STATUS[status]));
    if (!text.trim() && !STATUS[status]) node.remove();
    return node;
  }

  /** A piece of the answer, or with `replace` all of it so far. */
  streamed(text, replace) {
    if (!this.live) {
      const node = this.append(element("div", "message assistant live"));
      node.setAttribute("aria-busy", "true");
      this.live = { node, text: "", timer: 0 };
    }
    const live = this.live;
    live.text = replace ? text : live.text + text;
    live.timer ||= setTimeout(() => {
      live.timer = 0;
      if (this.live === live) live.node.replaceChildren(prose(live.text));
    }, REDRAW_MS);
  }

  /** A turn ended: text that streamed and was never completed stays as it is. */
  settled(turn, status) {
    if (this.live) {
      const text = this.live.text;
      this.answered(text, status);
    } else if (STATUS[status] && status === "failed") {
      this.log.lastElementChild?.classList.contains("assistant") || this.notice(STATUS[status]);
    }
    for (const node of this.tools.values()) node.dataset.state = "end";
    this.tools.clear();
  }

  tool(name, state) {
    const open = this.tools.get(name);
    if (state === "end") {
      if (open) open.dataset.state = "end";
      this.tools.delete(name);
      return;
    }
    const node = this.append(element("p", "tool", element("span", "tool-name", name)));
    node.dataset.state = "start";
    this.tools.set(name, node);
  }

  notice(text) {
    return this.append(element("div", "notice", prose(text)));
  }

  watch() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroll;
    this.pinned = scrollHeight - scrollTop - clientHeight < 60;
    this.latest.hidden = this.pinned;
  }

  /** Follow the conversation, unless the reader has scrolled up. */
  toEnd(force = false) {
    if (force) this.pinned = true;
    if (this.pinned) this.scroll.scrollTop = this.scroll.scrollHeight;
    else this.watch();
  }
}
