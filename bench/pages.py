"""The server of the login page: `python -m bench.pages` prints its port and serves until it is killed."""

from __future__ import annotations

import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TITLE = "Sign in"
LOGIN = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title>
<link rel="icon" href="data:,"></head><body>
<h1>Account</h1>
<p><label>Username <input id="user" autocomplete="off"></label></p>
<p><label>Password <input id="pass" type="password" autocomplete="off"></label></p>
<p><button id="go" type="button">Sign in</button></p>
<p id="result" role="status"></p>
<script>
document.getElementById("go").addEventListener("click", () => {{
  document.getElementById("result").textContent =
    "Welcome, " + document.getElementById("user").value + " (" + document.getElementById("pass").value.length + ")";
}});
</script></body></html>
""".encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(LOGIN)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(LOGIN)

    def log_message(self, *_: object) -> None:
        return


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
