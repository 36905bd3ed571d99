// Loaded into AIO's hub, which has no such option: makes it listen on loopback only, so that every client passes nginx.
"use strict";
const net = require("node:net");

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...words) {
  const [first, second] = words;
  if (first !== null && typeof first === "object") {
    if (first.port !== undefined) words[0] = { ...first, host: "127.0.0.1" };
  } else if (typeof first === "number" || (typeof first === "string" && /^\d+$/.test(first))) {
    words.splice(1, typeof second === "string" ? 1 : 0, "127.0.0.1");
  }
  return listen.apply(this, words);
};
