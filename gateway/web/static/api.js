// The HTTP API: requests with JSON, and a session's events as they come.

/** Longest silence of a stream in ms. The gateway sends a comment every 15 s; more than two missed means a dead line. */
const SILENCE_MS = 40_000;
const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 15_000;

/** An answer that is not 2xx, or none at all (status 0). */
export class Problem extends Error {
  constructor(status, code, message, { outcome = "", retryAfter = 0 } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.outcome = outcome;
    this.retryAfter = retryAfter;
  }
}

let skew = 0;

/** The gateway's time in ms, by the date of its last answer. */
export function serverNow() {
  return Date.now() + skew;
}

/** Make a request; resolves to the JSON of the answer, rejects with a Problem. */
export async function call(method, path, body) {
  const options = { method, headers: {}, cache: "no-store" };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Problem(0, "unreachable", "The gateway cannot be reached.");
  }
  const date = Date.parse(response.headers.get("Date") ?? "");
  // The header has whole seconds: half of one is the middle of what was cut off.
  if (!Number.isNaN(date)) skew = Math.abs(date + 500 - Date.now()) < 1500 ? 0 : date + 500 - Date.now();
  return answerOf(response);
}

async function answerOf(response) {
  if (response.status === 204) return null;
  let data = null;
  try {
    data = await response.json();
  } catch {
    // What is no JSON comes from something between us and the gateway.
  }
  if (response.ok && data !== null) return data;
  const error = data?.error ?? {};
  throw new Problem(response.status, error.code ?? "", error.message ?? `The answer was ${response.status}.`, {
    outcome: error.outcome,
    retryAfter: Number(response.headers.get("Retry-After")) || 0,
  });
}

export const path = (session, rest = "") => `/v1/sessions/${encodeURIComponent(session)}${rest}`;

/**
 * A session's events, reconnected with growing pauses until `close` is called or the session is gone.
 *
 * `on` has the functions `open()`, `event(type, data, id)`, `down(seconds)` and `ended(status)`.
 */
export class Stream {
  constructor(session, after, on) {
    this.session = session;
    this.last = after;
    this.on = on;
    this.closed = false;
    this.abort = null;
    this.wake = null;
    this.nudge = () => this.wake?.();
    addEventListener("online", this.nudge);
    document.addEventListener("visibilitychange", this.nudge);
    this.run();
  }

  close() {
    this.closed = true;
    removeEventListener("online", this.nudge);
    document.removeEventListener("visibilitychange", this.nudge);
    this.abort?.abort();
    this.wake?.();
  }

  async run() {
    let delay = FIRST_DELAY_MS;
    while (!this.closed) {
      const began = Date.now();
      try {
        const status = await this.once();
        if (status === 401 || status === 404) {
          if (!this.closed) this.on.ended(status);
          return;
        }
      } catch {
        // The line broke or fell silent: what follows is the same as after its end.
      }
      if (this.closed) return;
      if (Date.now() - began > LONGEST_DELAY_MS) delay = FIRST_DELAY_MS;
      const pause = delay * (0.75 + Math.random() / 2);
      this.on.down(Math.ceil(pause / 1000));
      await this.sleep(pause);
      delay = Math.min(delay * 2, LONGEST_DELAY_MS);
    }
  }

  sleep(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** One connection; resolves to the status if it was refused, and when it ends. */
  async once() {
    this.abort = new AbortController();
    let silence = setTimeout(() => this.abort.abort(), SILENCE_MS);
    try {
      const response = await fetch(path(this.session, "/events"), {
        headers: { Accept: "text/event-stream", "Last-Event-ID": String(this.last) },
        cache: "no-store",
        signal: this.abort.signal,
      });
      if (!response.ok) return response.status;
      this.on.open();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return 200;
        clearTimeout(silence);
        silence = setTimeout(() => this.abort.abort(), SILENCE_MS);
        const frames = (rest + value).split("\n\n");
        rest = frames.pop();
        for (const frame of frames) {
          if (this.closed) return 200;
          this.take(frame);
        }
      }
    } finally {
      clearTimeout(silence);
      this.abort.abort();
    }
  }

  take(frame) {
    let id = 0;
    let type = "message";
    let data = "";
    for (const line of frame.split("\n")) {
      const [, name, value] = /^([^:]*):? ?(.*)$/.exec(line);
      if (name === "id") id = Number(value);
      else if (name === "event") type = value;
      else if (name === "data") data += value;
    }
    if (!data) return;
    if (id) this.last = Math.max(this.last, id);
    try {
      this.on.event(type, JSON.parse(data), id);
    } catch (error) {
      console.error(error); // a fault of this page must not look like a broken line
    }
  }
}
