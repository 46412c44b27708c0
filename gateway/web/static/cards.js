// Cards: what the gateway asks a person, with buttons, a countdown, and how it ended. A card never answers by itself.

import { call, serverNow } from "./api.js";
import { element, person, visible } from "./text.js";

/** A button that has just appeared under a finger does nothing for so long, in ms. */
const ARM_MS = 400;

const CHOICES = { once: "once", session: "for this session", always: "always" };

/** How an ask ended, as a sentence. */
export function ending(outcome, choice, by) {
  const who = by ? ` by ${person(by)}` : "";
  switch (outcome) {
    case "approved":
      return `Approved${who}${choice ? ` (${CHOICES[choice] ?? choice})` : ""}.`;
    case "denied":
      return `Denied${who}. It did not run.`;
    case "timed_out":
      return "Timed out — nothing ran.";
    case "cancelled":
      return "Cancelled — its turn ended before an answer came.";
    case "undeliverable":
      return "Nobody who may answer could be shown this — nothing ran.";
    case "answered":
      return `Answered${who}${choice ? `: ${choice}` : ""}.`;
    default:
      return "This request has ended.";
  }
}

/** One card; `node` is its element. */
export class Card {
  /** `announced` says where it comes from, for cards of other sessions. */
  constructor(ask, { where = "" } = {}) {
    this.ask = ask;
    this.ended = false;
    this.busy = true;
    this.closed = false;
    this.node = this.build(where);
    this.tick();
    this.refresh();
    setTimeout(() => {
      this.busy = false;
      this.refresh();
    }, ARM_MS);
  }

  build(where) {
    const ask = this.ask;
    const title = element("h3", "", visible(ask.title || "A question"));
    title.id = `ask-${ask.id}`;
    this.timer = element("span", "timer");
    this.timer.setAttribute("aria-label", "time left");
    const node = element("section", "card", element("div", "card-head", title, this.timer));
    node.setAttribute("role", "group");
    node.setAttribute("aria-labelledby", title.id);
    node.dataset.ask = ask.id;
    if (ask.command) {
      const pre = element("pre", "command", element("code", "", visible(ask.command)));
      pre.tabIndex = 0;
      pre.setAttribute("aria-label", "Command");
      node.append(pre);
    }
    node.append(this.facts(where));
    this.form = this.controls();
    this.says = element("p", "says");
    this.says.setAttribute("role", "status");
    node.append(this.form, this.says);
    return node;
  }

  facts(where) {
    const ask = this.ask;
    const list = element("dl", "facts");
    const add = (name, ...value) => list.append(element("div", "", element("dt", "", name), element("dd", "", ...value)));
    if (ask.reason) add("Why", visible(ask.reason));
    if (ask.impact) add("Effect", visible(ask.impact));
    if (ask.rules?.length) add("Rules", ...ask.rules.map((rule) => element("code", "rule", visible(rule))));
    if (ask.requested_by) add("Asked by", visible(person(ask.requested_by)));
    if (ask.origin) add("From", visible(ask.origin));
    if (where) add("Session", visible(where));
    return list;
  }

  /** The buttons in the gateway's order, and a field where something may be typed. */
  controls() {
    const ask = this.ask;
    const form = element("form", "controls");
    form.autocomplete = "off";
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.field?.value.trim()) this.post({ text: this.field.value.trim() });
    });
    if (ask.kind !== "approval") form.append(this.typed());
    const buttons = element("div", "buttons");
    for (const { value, label } of ask.choices) {
      const button = element("button", `choice ${value}`, visible(label));
      button.type = "button";
      button.dataset.choice = value;
      button.addEventListener("click", () => this.choose(value));
      buttons.append(button);
    }
    form.append(buttons);
    if (ask.kind === "approval" && ask.choices.some(({ value }) => value === "deny")) form.append(this.denial());
    return form;
  }

  typed() {
    const { kind, token } = this.ask;
    this.field = element("input");
    this.field.id = `answer-${this.ask.id}`;
    this.field.spellcheck = false;
    this.field.autocapitalize = "none";
    const label = element("label");
    label.htmlFor = this.field.id;
    if (kind === "token") label.append("To confirm, type ", element("code", "token", visible(token ?? "")));
    else if (kind === "line") label.append("To confirm once more, type ", element("code", "token", "confirm"));
    else label.append(this.ask.choices.length ? "Or in your own words" : "Your answer");
    const send = element("button", "choice", kind === "question" ? "Answer" : "Confirm");
    send.type = "submit";
    return element("div", "typed", label, element("div", "typed-row", this.field, send));
  }

  denial() {
    this.why = element("input");
    this.why.maxLength = 1000;
    this.why.setAttribute("aria-label", "Reason for a denial");
    this.why.placeholder = "The agent is told this when you deny";
    return element("details", "denial", element("summary", "", "Deny with a reason"), this.why);
  }

  choose(choice) {
    const body = { choice };
    const reason = this.why?.value.trim();
    if (choice === "deny" && reason) body.reason = reason;
    this.post(body);
  }

  async post(body) {
    if (this.busy || this.ended) return;
    this.busy = true;
    this.say("Sending your answer …");
    this.refresh();
    try {
      this.answered(await call("POST", `/v1/asks/${encodeURIComponent(this.ask.id)}`, body));
    } catch (problem) {
      this.refused(problem);
    } finally {
      this.busy = false;
      this.refresh();
    }
  }

  answered(answer) {
    if (answer.outcome !== "pending") {
      // The stream may have told already, and it knows who it was.
      if (!this.ended) this.end(answer.outcome, answer.choice, "you");
    } else if (answer.need > 1) {
      this.closed = true;
      this.say(`Noted: ${answer.have} of ${answer.need} people have approved. It waits for the others.`);
    } else {
      this.say("That is not the text that is shown. Try again.");
      this.field?.select();
    }
  }

  refused(problem) {
    switch (problem.status) {
      case 409:
      case 410:
        this.end(problem.outcome || (problem.status === 410 ? "timed_out" : ""), "", "");
        return;
      case 403:
        this.closed = true;
        this.say("This is not yours to answer.", "bad");
        return;
      case 404:
        this.closed = true;
        this.say("The gateway does not know this request any more. Nothing ran.", "bad");
        return;
      case 401:
        this.say("You are logged out; nothing was sent. Run “ostiary link” and open the link.", "bad");
        return;
      case 400:
        this.say(`That was not taken: ${problem.message}`, "bad");
        return;
      default:
        this.say("Your answer did not arrive. Try again.", "bad");
    }
  }

  /** Show how it ended. The gateway's own word (with who answered) replaces what this page concluded before. */
  end(outcome, choice, by) {
    this.ended = true;
    this.node.dataset.outcome = outcome || "ended";
    this.form.hidden = true;
    this.timer.hidden = true;
    this.say(ending(outcome, choice, by), outcome === "approved" || outcome === "answered" ? "good" : "bad");
    this.refresh();
  }

  say(text, tone = "") {
    this.says.textContent = text;
    this.says.className = `says ${tone}`;
  }

  /** Move the countdown on; at its end nothing can be tapped any more, and the gateway says how it ended. */
  tick() {
    if (this.ended) return;
    const left = Math.max(0, Math.ceil((Date.parse(this.ask.expires_at) - serverNow()) / 1000));
    const [minutes, seconds] = [Math.floor(left / 60), left % 60];
    this.timer.textContent = left ? `${minutes}:${String(seconds).padStart(2, "0")} left` : "time is up";
    this.timer.classList.toggle("soon", left <= 30);
    if (!left !== Boolean(this.late)) {
      this.late = !left;
      this.refresh();
    }
  }

  refresh() {
    const off = this.busy || this.ended || this.closed || this.late;
    for (const one of this.form?.querySelectorAll("button, input") ?? []) one.disabled = off;
  }
}
