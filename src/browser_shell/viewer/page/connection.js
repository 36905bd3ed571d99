// The connection to the server: tickets, and a socket that carries the picture and JSON messages.

const SUBPROTOCOL = "browser-shell.v1";
const MIN_RETRY_MS = 500;
const MAX_RETRY_MS = 10000;
const TICKET_TIMEOUT_MS = 15000;
const TOKEN_KEY = "browser-shell.token";

const EXPIRED = 4401;
const REFUSED = 1008;

// Reads the credentials and removes them from the URL, so that they stay out of the history.
export function takeCredentials() {
  const query = new URLSearchParams(location.search);
  const fragment = new URLSearchParams(location.hash.slice(1));
  const inPath = new URLSearchParams((query.get("path") ?? "").split("?")[1] ?? "");
  const last = (name) => fragment.getAll(name).at(-1) ?? query.getAll(name).at(-1);
  const ticket = last("ticket") ?? inPath.getAll("ticket").at(-1) ?? null;
  const newToken = fragment.get("token");
  const wantsControl = last("mode") === "control";
  history.replaceState(null, "", location.pathname);
  if (newToken) {
    sessionStorage.setItem(TOKEN_KEY, newToken);
  }
  // A ticket takes precedence over a token. The token survives a reload of this tab only.
  return { ticket, token: ticket ? null : newToken ?? sessionStorage.getItem(TOKEN_KEY), wantsControl };
}

export function forgetToken() {
  sessionStorage.removeItem(TOKEN_KEY);
}

// A socket for noVNC that delivers binary frames only.
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

class TicketRefused extends Error {
  constructor(status) {
    super(`tickets: ${status}`);
    this.status = status;
  }
}

// Calls `on.connecting()`, `on.picture(channel)`, `on.message(message)`, `on.noControl()` and `on.lost({why, reason, willRetry})`.
export class Connection {
  constructor({ ticket, token, wantsControl }, on) {
    this.ticket = ticket;
    this.token = token;
    // A server without tokens issues tickets to anonymous pages.
    this.anonymous = !ticket && !token;
    this.mode = wantsControl ? "control" : "view";
    this.on = on;
    this.retryMs = MIN_RETRY_MS;
    this.timer = 0;
    this.attempt = 0;
    this.socket = null;
  }

  get canReconnect() { return this.anonymous || this.token !== null; }

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
    this.retryMs = MIN_RETRY_MS;
    return this.open();
  }

  send(message) {
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
    if (!this.canReconnect) {
      throw new TicketRefused(0);
    }
    const credential = this.token ? { "Authorization": `Bearer ${this.token}` } : {};
    const response = await fetch(new URL("../tickets", location.href), {
      method: "POST",
      headers: { ...credential, "Content-Type": "application/json" },
      body: JSON.stringify({ mode: this.mode }),
      cache: "no-store",
      signal: AbortSignal.timeout(TICKET_TIMEOUT_MS),
    });
    if (!response.ok) {
      throw new TicketRefused(response.status);
    }
    return (await response.json()).ticket;
  }

  failed(error) {
    const status = error instanceof TicketRefused ? error.status : -1;
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
    const socket = this.socket = new WebSocket(address, [SUBPROTOCOL]);
    const channel = new PictureChannel(socket);
    let opened = false;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      opened = true;
      this.on.picture(channel);
    };
    socket.onmessage = (event) => {
      if (typeof event.data === "string") {
        // A message proves that the connection works; an open socket alone may close again at once.
        this.retryMs = MIN_RETRY_MS;
        this.on.message(JSON.parse(event.data));
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
    if (!this.canReconnect) {
      this.on.lost({ why, reason, willRetry: false });
      return;
    }
    this.on.lost({ why, reason, willRetry: true });
    // Jitter, so that the viewers of a restarted server do not reconnect at the same time.
    this.timer = setTimeout(() => this.open(), this.retryMs * (0.75 + Math.random() / 2));
    this.retryMs = Math.min(this.retryMs * 2, MAX_RETRY_MS);
  }
}
