// The page: draws the picture, the state of the connection and the controls.

import RFB from "./novnc/core/rfb.js";
import { Connection, forgetToken, takeCredentials } from "./connection.js";
import { ActivityList, SessionBar } from "./lists.js";

const RETURN_KEYSYM = 0xff0d;
const ENDINGS = {
  nothing: ["This page needs a link", "Open the view link that the server printed, or ask for a new ticket."],
  token: ["This link has ended", "Its token has expired or is not valid here. Ask for a new link."],
  forbidden: ["You may not watch", "The policy of this server gives this token no tickets."],
  refused: ["The server ended the connection", "It did not understand this page. Reload it, or ask for a new link."],
  ticket: ["This link was already used", "A ticket opens one connection, for a short time. Ask for a new link."],
  lost: ["Connection lost", "A ticket opens one connection only. Ask for a new link to continue."],
  server: ["The server does not answer", "The page keeps trying."],
};

const $ = (id) => document.getElementById(id);
const body = document.body;
const activity = new ActivityList($("activity"), $("activity-empty"));
const sessions = new SessionBar($("sessions"), (id) => connection.send({ type: "raise", session: id }));

let rfb = null;
let hasPicture = false;
let mode = "";
let state = null;
let takeOverNext = false;

function drawConnection(status, text) {
  body.dataset.state = status;
  $("state").textContent = text;
}

function drawOverlay(title, text, { again = false } = {}) {
  $("overlay").hidden = !title;
  $("overlay-title").textContent = title ?? "";
  $("overlay-text").textContent = text ?? "";
  $("again").hidden = !again;
}

function drawTakeover() {
  const you = Boolean(state?.you);
  const person = Boolean(state?.person_in_control);
  body.dataset.you = you ? "yes" : "no";
  $("turn").hidden = !person;
  if (you) {
    $("turn").textContent = state.held
      ? "You are in control. Agents wait until you hand back."
      : "You are in control. Agents wait while you are active.";
  } else if (person) {
    $("turn").textContent = "A person is in control. Agents wait.";
  }
}

function drawControl() {
  const button = $("control");
  const live = body.dataset.state === "connected";
  const you = Boolean(state?.you);
  // A view socket cannot take over. With a token the page can reconnect with a control socket.
  button.hidden = !live || (mode !== "control" && !connection.canReconnect);
  button.textContent = you ? "Hand back" : "Take over";
  $("typing").hidden = !live || mode !== "control";
}

function draw() {
  $("mode").hidden = !mode;
  $("mode").textContent = mode.toUpperCase();
  $("mode").title = mode === "control" ? "Your mouse and keyboard reach the browser." : "You watch. Nothing you do reaches the browser.";
  body.dataset.mode = mode;
  drawTakeover();
  drawControl();
  if (body.dataset.state === "connected") {
    if (hasPicture && state && state.open_sessions === 0) {
      drawOverlay("No session is open yet", "The picture appears as soon as an agent opens a page.");
    } else if (hasPicture) {
      drawOverlay(null);
    }
  }
}

function onPicture(channel) {
  hasPicture = false;
  rfb = new RFB($("screen"), channel);
  rfb.viewOnly = true;
  rfb.scaleViewport = true;
  rfb.background = "transparent";
  rfb.addEventListener("connect", () => {
    hasPicture = true;
    const canvas = $("screen").querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", "Picture of the browser. In control mode, Shift+Escape leaves it.");
    $("stage").style.setProperty("--shape", `${canvas.width} / ${canvas.height}`);
    drawConnection("connected", "Live");
    draw();
  });
}

function onMessage(message) {
  if (message.type === "hello") {
    mode = message.mode;
    rfb.viewOnly = mode !== "control";
    if (takeOverNext && mode === "control") {
      connection.send({ type: "take_over" });
    }
    takeOverNext = false;
  } else if (message.type === "activity") {
    activity.add(message.entries);
  } else if (message.type === "situation") {
    state = message;
    sessions.show(message.sessions, mode === "control");
  }
  draw();
}

function onLost({ why, reason, willRetry }) {
  state = null;
  takeOverNext = false;
  if (why === "token") {
    forgetToken();
  }
  if (willRetry) {
    drawConnection("connecting", "Reconnecting…");
    drawOverlay("Reconnecting…", reason ? `The server said: ${reason}.` : "The page reconnects by itself.");
  } else {
    mode = "";
    drawConnection("ended", "Not connected");
    drawOverlay(...ENDINGS[why], { again: connection.canReconnect });
  }
  draw();
}

const connection = new Connection(takeCredentials(), {
  connecting() {
    rfb = null;
    $("screen").replaceChildren();
    drawConnection("connecting", "Connecting…");
    drawOverlay("Connecting…", "");
    draw();
  },
  noControl() {
    takeOverNext = false;
    $("control").title = "The policy of this server gives this token no control.";
    $("control").disabled = true;
  },
  picture: onPicture,
  message: onMessage,
  lost: onLost,
});

$("control").addEventListener("click", () => {
  if (state?.you) {
    connection.send({ type: "hand_back" });
  } else if (mode === "control") {
    connection.send({ type: "take_over" });
    rfb?.focus();
  } else {
    takeOverNext = true;
    connection.reopenAs("control");
  }
});

$("again").addEventListener("click", () => connection.open());

$("typing").addEventListener("submit", (event) => {
  event.preventDefault();
  for (const character of $("text").value) {
    const code = character.codePointAt(0);
    // X11 keysyms: Latin-1 is unchanged, other characters are the code point with this bit set.
    rfb?.sendKey(code < 0x100 ? code : 0x01000000 | code, null);
  }
  $("text").value = "";
});

$("enter").addEventListener("click", () => rfb?.sendKey(RETURN_KEYSYM, "Enter"));

// In control mode every key goes to the browser, Tab included. Shift+Escape returns to the page.
$("stage").addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.shiftKey) {
    event.preventDefault();
    event.stopPropagation();
    rfb?.blur();
    $("control").focus();
  }
}, { capture: true });

document.addEventListener("visibilitychange", () => {
  // A phone that was asleep has lost its socket: reconnect at once instead of after the pause.
  if (!document.hidden && body.dataset.state === "connecting" && connection.canReconnect && !connection.socket) {
    connection.open();
  }
});

connection.open();
