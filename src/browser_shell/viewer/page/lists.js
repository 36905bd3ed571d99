// The lists of activity and of open sessions. All content is set as text, never as markup.

const MAX_ROWS = 200;
const RETRYABLE = new Set(["HUMAN_IN_CONTROL", "SESSION_LIMIT", "RATE_LIMITED", "CANCELLED"]);
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

function element(name, className, text) {
  const node = document.createElement(name);
  node.className = className;
  node.textContent = text;
  return node;
}

function duration(ms) {
  if (ms === null) {
    return "";
  }
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function idle(seconds) {
  if (seconds < 10) {
    return "active";
  }
  return seconds < 120 ? `idle ${Math.round(seconds)} s` : `idle ${Math.round(seconds / 60)} min`;
}

function row(entry) {
  const line = document.createElement("li");
  const when = new Date(entry.at * 1000);
  const time = element("time", "", clock.format(when));
  time.dateTime = when.toISOString();
  const what = element("span", "what", entry.what || "call");
  if (entry.session) {
    what.append(element("span", "session", ` · ${entry.session}`));
  }
  const ok = entry.result === "ok";
  const isRetryable = RETRYABLE.has(entry.result);
  line.append(time, what, element("span", "ok", ok ? "ok" : ""), element("span", "length", duration(entry.ms)));
  if (!ok) {
    line.append(element("span", isRetryable ? "more later" : "more bad", entry.result));
  }
  if (entry.detail && !isRetryable) {
    line.append(element("span", "more", entry.detail));
  }
  return line;
}

export class ActivityList {
  constructor(list, empty) {
    this.list = list;
    this.empty = empty;
    this.newest = 0;
  }

  add(entries) {
    // The server resends the last entries after a reconnect, and numbers from 1 after a restart.
    if (entries.length && entries.at(-1).number < this.newest) {
      this.list.replaceChildren();
      this.newest = 0;
    }
    for (const entry of entries) {
      if (entry.number > this.newest) {
        this.newest = entry.number;
        this.list.prepend(row(entry));
      }
    }
    while (this.list.childElementCount > MAX_ROWS) {
      this.list.lastElementChild.remove();
    }
    this.empty.hidden = this.list.childElementCount > 0;
  }
}

export class SessionBar {
  constructor(bar, raise) {
    this.bar = bar;
    this.raise = raise;
    this.updatedAt = 0;
    this.sessions = [];
    setInterval(() => this.draw(), 10000);
  }

  show(sessions, mayRaise) {
    this.sessions = sessions;
    this.mayRaise = mayRaise;
    this.updatedAt = performance.now();
    this.draw();
  }

  draw() {
    const focused = document.activeElement?.dataset?.session;
    const secondsSinceUpdate = (performance.now() - this.updatedAt) / 1000;
    this.bar.hidden = this.sessions.length === 0;
    this.bar.replaceChildren(...this.sessions.map((session) => {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.session = session.id;
      button.disabled = !this.mayRaise;
      button.title = session.title;
      if (session.front) {
        button.setAttribute("aria-current", "true");
      }
      const where = session.host || "empty page";
      button.append(element("b", "", session.id), element("span", "", `${where} · ${idle(session.idle_seconds + secondsSinceUpdate)}`));
      button.addEventListener("click", () => this.raise(session.id));
      return button;
    }));
    if (focused) {
      [...this.bar.children].find((button) => button.dataset.session === focused)?.focus();
    }
  }
}
