// The way to the server: tickets, the socket, and the two things that ride on it, picture and words.

const WITH_WORDS = "browser-shell.v1";
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10000;
const TICKET_MS = 15000;
const KEPT_TOKEN = "browser-shell.token";

const EXPIRED = 4401;
const REFUSED = 1008;

// Takes the credentials out of the address, so that they are neither seen, copied nor kept in the history.
export function takeCredentials() {
  const query = new URLSearchParams(location.search);
  const fragment = new URLSearchParams(location.hash.slice(1));
  const inPath = new URLSearchParams((query.get("path") ?? "").split("?")[1] ?? "");
  const last = (name) => fragment.getAll(name).at(-1) ?? query.getAll(name).at(-1);
  const ticket = last("ticket") ?? inPath.getAll("ticket").at(-1) ?? null;
  const fresh = fragment.get("token");
  const wantsControl = last("mode") === "control";
  history.replaceState(null, "", location.pathname);
  if (fresh) {
    sessionStorage.setItem(KEPT_TOKEN, fresh);
  }
  // A ticket beats a token. A token survives a reload of this tab, and only of this tab.
  return { ticket, token: ticket ? null : fresh ?? sessionStorage.getItem(KEPT_TOKEN), wantsControl };
}

export function forgetToken() {
  sessionStorage.removeItem(KEPT_TOKEN);
}

// What noVNC takes for a socket. It sees binary frames only.
class PictureChannel {
  constructor(socket) {
    this.socket = socket;
    this.binaryType = "arraybuffer";
    this.onopen = this.onmessage = this.onclose = this.onerror = null;
  }

  get protocol() { return this.socket.protocol; }
  get readyState() { return this.socket.readyState; }
  send(data) { this.socket.send(data); }
  close() { this.socket.close(); }
}

class Refused extends Error {
  constructor(status) {
    super(`tickets: ${status}`);
    this.status = status;
  }
}

// Calls `on.connecting()`, `on.picture(channel)`, `on.words(message)` and `on.lost({why, willRetry})`.
export class Connection {
  constructor({ ticket, token, wantsControl }, on) {
    this.ticket = ticket;
    this.token = token;
    // With neither, the page asks all the same: a server without tokens gives tickets to everyone.
    this.anonymous = !ticket && !token;
    this.mode = wantsControl ? "control" : "view";
    this.on = on;
    this.pause = FIRST_PAUSE_MS;
    this.timer = 0;
    this.attempt = 0;
    this.socket = null;
  }

  get canReturn() { return this.anonymous || this.token !== null; }

  async open() {
    clearTimeout(this.timer);
    const attempt = ++this.attempt;
    this.drop();
    this.on.connecting();
    let ticket;
    try {
      ticket = await this.nextTicket();
    } catch (error) {
      if (attempt === this.attempt) {
        this.failed(error);
      }
      return;
    }
    if (attempt === this.attempt) {
      this.connect(ticket);
    }
  }

  reopenAs(mode) {
    this.mode = mode;
    this.pause = FIRST_PAUSE_MS;
    return this.open();
  }

  say(message) {
    if (this.socket?.readyState === WebSocket.OPEN) {
      this.socket.send(JSON.stringify(message));
    }
  }

  drop() {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  async nextTicket() {
    if (this.ticket) {
      const ticket = this.ticket;
      this.ticket = null;
      return ticket;
    }
    if (!this.canReturn) {
      throw new Refused(0);
    }
    const credential = this.token ? { "Authorization": `Bearer ${this.token}` } : {};
    const answer = await fetch(new URL("../tickets", location.href), {
      method: "POST",
      headers: { ...credential, "Content-Type": "application/json" },
      body: JSON.stringify({ mode: this.mode }),
      cache: "no-store",
      signal: AbortSignal.timeout(TICKET_MS),
    });
    if (!answer.ok) {
      throw new Refused(answer.status);
    }
    return (await answer.json()).ticket;
  }

  failed(error) {
    const status = error instanceof Refused ? error.status : -1;
    if (status === 403 && this.mode === "control") {
      this.mode = "view";
      this.on.noControl();
      this.open();
    } else if (status === 0 || (status === 401 && this.anonymous)) {
      this.anonymous = false;
      this.on.lost({ why: "nothing", willRetry: false });
    } else if (status === 401 || status === 403) {
      this.on.lost({ why: status === 401 ? "token" : "forbidden", willRetry: false });
    } else {
      this.retry("server");
    }
  }

  connect(ticket) {
    const address = new URL("websockify", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    address.searchParams.set("ticket", ticket);
    const socket = this.socket = new WebSocket(address, [WITH_WORDS]);
    const channel = new PictureChannel(socket);
    let opened = false;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      opened = true;
      this.on.picture(channel);
    };
    socket.onmessage = (event) => {
      if (typeof event.data === "string") {
        // Only a socket that says something was a success; a door that opens and shuts is not.
        this.pause = FIRST_PAUSE_MS;
        this.on.words(JSON.parse(event.data));
      } else {
        channel.onmessage?.(event);
      }
    };
    socket.onclose = (event) => {
      channel.onclose?.(event);
      if (this.socket === socket) {
        this.socket = null;
        this.ended(event, opened);
      }
    };
  }

  ended(event, opened) {
    if (event.code === EXPIRED) {
      this.on.lost({ why: "token", willRetry: false });
    } else if (event.code === REFUSED) {
      this.on.lost({ why: "refused", willRetry: false });
    } else {
      this.retry(opened ? "lost" : "ticket", event.reason);
    }
  }

  retry(why, reason = "") {
    if (!this.canReturn) {
      this.on.lost({ why, reason, willRetry: false });
      return;
    }
    this.on.lost({ why, reason, willRetry: true });
    // Not all viewers of a restarted server at the same moment.
    this.timer = setTimeout(() => this.open(), this.pause * (0.75 + Math.random() / 2));
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE_MS);
  }
}
