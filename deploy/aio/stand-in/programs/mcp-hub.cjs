#!/usr/bin/node
// Stands in for AIO's hub: --port N --stateless --config FILE. One /mcp over every server of the file, stdio and HTTP, with their
// prefixes, no sessions, and a listener on every interface. Only for tests.
"use strict";
const fs = require("node:fs");
const http = require("node:http");
const readline = require("node:readline");
const { spawn } = require("node:child_process");

const option = (name) => process.argv[process.argv.indexOf(name) + 1];
const servers = Object.values(JSON.parse(fs.readFileSync(option("--config"), "utf8")).mcpServers);

class StdioServer {
  constructor(entry) {
    this.waiting = new Map();
    this.last = 0;
    this.child = spawn(entry.command, entry.args ?? [], {
      env: { ...process.env, ...entry.env },
      stdio: ["pipe", "pipe", "inherit"],
    });
    // A hub without its server is useless: exit, and let supervisord restart both.
    this.child.on("exit", () => process.exit(1));
    this.child.on("error", () => process.exit(1));
    readline.createInterface({ input: this.child.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    });
    this.ready = this.send("initialize", {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name: "stand-in hub", version: "0" },
    }).then(() => this.child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n'));
  }
  send(method, params) {
    const id = ++this.last;
    const answer = new Promise((resolve) => this.waiting.set(id, resolve));
    this.child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
    return answer;
  }
  async ask(method, params) {
    await this.ready;
    return this.send(method, params);
  }
}

class HttpServer {
  constructor(entry) {
    this.url = entry.url;
  }
  async ask(method, params) {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const headers = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
    return (await fetch(this.url, { method: "POST", headers, body })).json();
  }
}

const upstreams = servers.map((entry) => ({
  prefix: entry.prefix ? `${entry.prefix}_` : "",
  hidden: Boolean(entry.hidden),
  server: entry.url ? new HttpServer(entry) : new StdioServer(entry),
}));

async function listTools() {
  const tools = [];
  for (const { prefix, hidden, server } of upstreams) {
    if (hidden) continue;
    for (const tool of (await server.ask("tools/list", {})).result.tools) tools.push({ ...tool, name: prefix + tool.name });
  }
  return { result: { tools } };
}

async function callTool(params) {
  for (const { prefix, server } of upstreams) {
    if (!params.name.startsWith(prefix)) continue;
    const name = params.name.slice(prefix.length);
    const known = (await server.ask("tools/list", {})).result.tools.some((tool) => tool.name === name);
    if (known) return server.ask("tools/call", { ...params, name });
  }
  return { error: { code: -32602, message: `no tool ${params.name}` } };
}

async function answer(message) {
  if (message.method === "tools/list") return listTools();
  if (message.method === "tools/call") return callTool(message.params);
  if (message.method !== "initialize") return { result: {} };
  const serverInfo = { name: "stand-in hub", version: "0" };
  return { result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo } };
}

http
  .createServer(async (request, response) => {
    const reply = (status, value) => {
      response.writeHead(status, { "Content-Type": "application/json" });
      response.end(value === undefined ? "" : JSON.stringify(value));
    };
    if (new URL(request.url, "http://hub").pathname !== "/mcp") return reply(404, {});
    if (request.method !== "POST") return reply(406, { error: "Client must accept text/event-stream" });
    try {
      let body = "";
      for await (const part of request) body += part;
      const message = JSON.parse(body);
      if (message.id === undefined) return reply(202);
      const { result, error } = await answer(message);
      reply(200, { jsonrpc: "2.0", id: message.id, ...(error ? { error } : { result }) });
    } catch (fault) {
      reply(500, { error: String(fault) });
    }
  })
  .listen(Number(option("--port")));
