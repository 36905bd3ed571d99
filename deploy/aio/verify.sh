#!/usr/bin/env bash
# Checks an image of the AIO overlay by running it: what must be gone, what must be closed, what must still work.
#   verify.sh [--engine podman] [--only "tool network"] IMAGE [flags of `docker run`]
# Groups: tool gone chromium network paths tokens tickets server start.
# One line a check, PASS or FAIL. Exit code: 0 all passed, 1 some failed, 2 the checks could not be made.
# Needs bash, curl, openssl and an engine. What it starts (a network, containers) it removes, and nothing else.
set -uo pipefail

engine=docker
groups='tool gone chromium network paths tokens tickets server start'
[ "${1:-}" = --engine ] && { engine=$2; shift 2; }
[ "${1:-}" = --only ] && { groups=$2; shift 2; }
image=${1:-}
[ -n "$image" ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
run_flags=("${@:2}")
for program in "$engine" curl openssl; do
  command -v "$program" >/dev/null || { echo "verify: $program is not installed" >&2; exit 2; }
done

scratch=$(mktemp -d)
name=aio-verify-$$
mapped=
ticket_seconds=6
passed=0
failed=0

clean_up() {
  "$engine" rm --force --volumes "$name" "$name-start" >/dev/null 2>&1
  "$engine" network rm "$name" >/dev/null 2>&1
  rm -rf "$scratch"
}
trap clean_up EXIT

pass() { passed=$((passed + 1)); echo "PASS $1"; }
fail() { failed=$((failed + 1)); echo "FAIL $1${2:+: $2}"; }
expect() { # check, wanted (alternatives by |), found
  if [[ $3 =~ ^($2)$ ]]; then pass "$1"; else fail "$1" "wanted $2, found ${3:-nothing}"; fi
}
contains() { if [[ $3 == *"$2"* ]]; then pass "$1"; else fail "$1" "no ${2@Q} in ${3:0:200}"; fi; }
lacks() { if [[ $3 == *"$2"* ]]; then fail "$1" "${2@Q} is there"; else pass "$1"; fi; }
inside() { "$engine" exec --user 0 "$name" "$@" 2>/dev/null; }

# --- Tokens -------------------------------------------------------------------------------------------------------------------
base64url() { base64 -w0 | tr '+/' '-_' | tr -d '='; }
sign_rs256() { openssl dgst -sha256 -sign "$1" -binary; }
sign_hs256() { openssl dgst -sha256 -mac HMAC -macopt "hexkey:$(od -An -v -tx1 "$1" | tr -d ' \n')" -binary; }
sign_none() { cat >/dev/null; }
token() { # algorithm, claims, signer, key
  local body
  body=$(printf '{"alg":"%s","typ":"JWT"}' "$1" | base64url).$(printf %s "$2" | base64url)
  printf '%s.%s' "$body" "$(printf %s "$body" | "$3" "$4" | base64url)"
}
make_keys() {
  local which
  for which in own other; do
    openssl genrsa -out "$scratch/$which.pem" 2048 2>/dev/null
    openssl rsa -in "$scratch/$which.pem" -pubout -out "$scratch/$which.pub" 2>/dev/null
  done
  later=$(($(date +%s) + 3600))
  good=$(token RS256 "{\"sub\":\"verify\",\"exp\":$later}" sign_rs256 "$scratch/own.pem")
}

# --- Requests -----------------------------------------------------------------------------------------------------------------
ask() { curl --silent --path-as-is --http1.1 --max-time 20 "$@"; } # curl's words; the URL is last
status() { ask --output /dev/null --write-out '%{http_code}' "${@:1:$#-1}" "http://127.0.0.1:$mapped${!#}"; }
with_token() { printf 'Authorization: Bearer %s' "${1:-$good}"; }
mcp() { # JSON-RPC method, params
  ask --header "$(with_token)" --header 'Content-Type: application/json' --header 'Accept: application/json, text/event-stream' \
    --data "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"$1\",\"params\":$2}" "http://127.0.0.1:$mapped/mcp"
}
call() { # words of argv as JSON, without brackets
  mcp tools/call "{\"name\":\"browser-shell\",\"arguments\":{\"session_id\":\"verify\",\"argv\":[$1]}}"
}
new_ticket() { ask --request POST --header "$(with_token)" "http://127.0.0.1:$mapped/tickets" | sed -n 's/.*"ticket": *"\([^"]*\)".*/\1/p'; }
open_socket() { # path and query
  # Only the first bytes count; the server sends them without a request.
  ask --no-buffer --max-time 3 --header 'Connection: Upgrade' --header 'Upgrade: websocket' --header 'Sec-WebSocket-Version: 13' \
    --header 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==' "http://127.0.0.1:$mapped$1" 2>/dev/null | head -c 14 | tr -dc ' -~'
}

# --- The container under test -------------------------------------------------------------------------------------------------
start() {
  make_keys
  cat >"$scratch/policy.json" <<'POLICY'
{"open": {"allow_hosts": ["verify.example"], "unsafe_resolve": {"verify.example": "127.0.0.1:8765"}}}
POLICY
  chmod 0755 "$scratch" && chmod 0644 "$scratch/policy.json"
  "$engine" network create "$name" >/dev/null || exit 2
  "$engine" run --detach --name "$name" --network "$name" --publish 127.0.0.1::8080 \
    --env "JWT_PUBLIC_KEY=$(base64 -w0 <"$scratch/own.pub")" --env "TICKET_TTL_SECONDS=$ticket_seconds" \
    --volume "$scratch/policy.json:/etc/agent-browser/browser-shell.policy.json:ro" "${run_flags[@]}" "$image" >/dev/null || exit 2
  mapped=$("$engine" port "$name" 8080 | sed -n '1s/.*://p')
  [ -n "$mapped" ] || { echo "verify: port 8080 of $image is not published" >&2; exit 2; }
  local tries
  for tries in $(seq 240); do
    [[ $(mcp tools/list '{}') == *'"tools"'* ]] && return
    sleep 0.5
  done
  echo "verify: no answer at /mcp after $tries tries; the container's last words:" >&2
  "$engine" logs --tail 20 "$name" >&2
  exit 2
}

# --- Checks -------------------------------------------------------------------------------------------------------------------
unwanted='mcp-server-browser chrome-devtools-mcp tinyproxy gost code-server jupyter-lab'

check_gone() {
  local processes program
  processes=$(inside sh -c 'for file in /proc/[0-9]*/cmdline; do tr "\0" " " <"$file"; echo; done')
  for program in $unwanted python-server; do lacks "process.$program" "$program" "$processes"; done
  for program in $unwanted sudo; do
    expect "program.$program" absent "$(inside sh -c "PATH=\$PATH:/opt/python3.12/bin; command -v $program >/dev/null && echo present || echo absent")"
  done
  expect supervisor.programs 'browser gem-server mcp-hub nginx openbox tigervnc websocat' \
    "$(inside sh -c 'sed -n "s/^\[program:\(.*\)\]/\1/p" /opt/gem/supervisord/*.conf' | sort | tr '\n' ' ' | sed 's/ $//')"
  expect supervisor.running 0 "$(inside supervisorctl -c /opt/gem/supervisord.conf status | grep -vc RUNNING)"
}

check_chromium() {
  local flags
  flags=$(inside sh -c 'tr "\0" " " <"/proc/$(pgrep -o -f -- --remote-debugging-port 2>/dev/null || grep -l -a -- --remote-debugging-port /proc/[0-9]*/cmdline | head -n 1 | cut -d / -f 3)/cmdline"')
  contains chromium.found --remote-debugging-port "$flags"
  lacks chromium.web-security --disable-web-security "$flags"
  lacks chromium.site-isolation --disable-site-isolation-trials "$flags"
  lacks chromium.devtools-origins '--remote-allow-origins=*' "$flags"
  contains chromium.default-proxy --proxy-server=http://127.0.0.1:1 "$flags"
  [[ $flags != *--no-sandbox* ]] || echo "NOTE Chromium runs with --no-sandbox; README.md says how to switch its sandbox on"
  contains chromium.managed-policy ERR_BLOCKED_BY_ADMINISTRATOR "$(go_straight_to file:///etc/hostname)"
}

# Chromium's own answer to an address, without browser-shell. Only programs inside the container can do this.
go_straight_to() {
  "$engine" exec --interactive "$name" /opt/browser-shell/bin/python -I - "$1" 2>&1 <<'PYTHON'
import json
import sys
import urllib.request
from websockets.sync.client import connect

new = urllib.request.Request("http://127.0.0.1:9222/json/new?about:blank", method="PUT")
page = json.load(urllib.request.urlopen(new, timeout=10))
with connect(page["webSocketDebuggerUrl"], proxy=None) as devtools:
    devtools.send(json.dumps({"id": 1, "method": "Page.navigate", "params": {"url": sys.argv[1]}}))
    print(devtools.recv(timeout=10))
urllib.request.urlopen("http://127.0.0.1:9222/json/close/" + page["id"], timeout=10)
PYTHON
}

check_network() {
  local address ports open
  address=$("$engine" inspect --format "{{(index .NetworkSettings.Networks \"$name\").IPAddress}}" "$name")
  # Whatever listens on any address, by the kernel's word, and what AIO is known to listen on.
  ports=$(inside sh -c 'cat /proc/net/tcp /proc/net/tcp6' | awk '$4 == "0A" { split($2, part, ":"); print part[2] }' | sort -u |
    while read -r hex; do echo $((16#$hex)); done)
  open=$("$engine" run --rm --network "$name" --entrypoint /bin/bash "$image" -c "
    for port in $(echo "$ports" 5900 6080 8079 8080 8081 8088 8091 8100 8118 8200 8888 9222 | tr '\n' ' '); do
      timeout 2 bash -c \"exec 3<>/dev/tcp/$address/\$port\" 2>/dev/null && echo \$port
    done" | sort -un | tr '\n' ' ')
  expect network.only-the-public-port '8080 ' "$open"
}

check_paths() {
  local path port
  for path in / /index.html /v1/ping /v1/sandbox /v1/shell/sessions /v1/mcp /v1/docs /llms.txt /health /json/version /json/list \
    /devtools/browser/x /cdp/json/version /screenshot /actions /terminal /code-server/ /jupyter/ /proxy/8091/v1/sandbox \
    /absproxy/8091/v1/sandbox /ws /sse /message /auth /_token /_ticket /_auth_handler /metrics \
    /mcp/ /mcp/x //mcp /./mcp /vnc/../mcp /%6dcp /mcp%2f /mcp%00 '/mcp;x' /MCP /tickets/ /%74ickets \
    /vnc/../v1/sandbox /vnc/%2e%2e/v1/sandbox /vnc/..%2fv1/sandbox /vnc/.%2e/v1/sandbox /vnc//etc/passwd /vnc/.git/config /vncx '/vnc\..\mcp'; do
    expect "closed $path" '403|400' "$(status --header "$(with_token)" "$path")"
  done
  for path in '/v1/sandbox?x=.js' '/cdp/json/version?x=.js' '/json/version?x=.css' /v1/x.json '/v1/file/download?path=/etc/shadow&x=.js'; do
    expect "static-extension $path" 403 "$(status "$path")"
  done
  expect 'static-extension /mcp?x=.js' 401 "$(status '/mcp?x=.js')"
  expect 'static-extension /vnc/index.html?x=.js' 401 "$(status '/vnc/index.html?x=.js')"
  for port in 8079 8081 8088 8091 9222; do
    expect "port-proxy $port" 403 "$(status --header "Host: $port-x" /json/version)"
  done
  expect 'port-proxy 8079 /mcp' 401 "$(status --header 'Host: 8079-x' --data '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' /mcp)"
  expect 'port-proxy 8088 /tickets' 401 "$(status --request POST --header 'Host: 8088-x' /tickets)"
  expect 'method PUT /mcp' 403 "$(status --request PUT --header "$(with_token)" /mcp)"
  expect 'method GET /tickets' 403 "$(status --header "$(with_token)" /tickets)"
}

check_tokens() {
  local claims="{\"sub\":\"verify\",\"exp\":$later}"
  expect token.good 200 "$(status --request POST --header "$(with_token)" /tickets)"
  expect token.none 401 "$(status --request POST /tickets)"
  expect token.garbage 401 "$(status --request POST --header "$(with_token garbage)" /tickets)"
  expect token.other-key 401 "$(status --request POST --header "$(with_token "$(token RS256 "$claims" sign_rs256 "$scratch/other.pem")")" /tickets)"
  expect token.expired 401 "$(status --request POST --header "$(with_token "$(token RS256 '{"exp":1}' sign_rs256 "$scratch/own.pem")")" /tickets)"
  expect token.algorithm-none 401 "$(status --request POST --header "$(with_token "$(token none "$claims" sign_none -)")" /tickets)"
  expect token.key-as-secret 401 "$(status --request POST --header "$(with_token "$(token HS256 "$claims" sign_hs256 "$scratch/own.pub")")" /tickets)"
  expect token.mcp 401 "$(status --data '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' /mcp)"
  expect token.page 401 "$(status /vnc/)"
  expect token.socket 401 "$(status --header 'Connection: Upgrade' --header 'Upgrade: websocket' /websockify)"
}

check_tickets() {
  local ticket
  contains ticket.made '"expires_in"' "$(ask --request POST --header "$(with_token)" "http://127.0.0.1:$mapped/tickets")"
  ticket=$(new_ticket)
  expect ticket.page 200 "$(status "/vnc/index.html?ticket=$ticket&path=websockify%3Fticket%3D$ticket")"
  contains ticket.socket RFB "$(open_socket "/websockify?ticket=$ticket")"
  contains ticket.socket-below-vnc RFB "$(open_socket "/vnc/websockify?ticket=$(new_ticket)")"
  ticket=$(new_ticket)
  expect ticket.before-token 401 "$(status --header "$(with_token)" '/vnc/index.html?ticket=00000000-0000-4000-8000-000000000000')"
  expect ticket.last-one-counts 200 "$(status "/vnc/index.html?ticket=wrong&ticket=$ticket")"
  expect ticket.calls-no-tool 401 "$(status --data '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' "/mcp?ticket=$ticket")"
  expect ticket.makes-no-ticket 401 "$(status --request POST "/tickets?ticket=$ticket")"
  sleep $((ticket_seconds + 1))
  expect ticket.ends 401 "$(status "/vnc/index.html?ticket=$ticket")"
}

check_tool() {
  local tools answer
  tools=$(mcp tools/list '{}' | grep -o '"name": *"[^"]*"' | sed 's/.*"\([^"]*\)"$/\1/' | sort | tr '\n' ' ')
  expect mcp.one-tool 'browser-shell ' "$tools"
  expect mcp.needs-event-stream 406 "$(status --header "$(with_token)" /mcp)"
  for answer in sandbox_execute_bash browser_navigate chrome_devtools_evaluate_script; do
    lacks "mcp.no-$answer" '"content"' "$(mcp tools/call "{\"name\":\"$answer\",\"arguments\":{}}" | grep -v '"isError": *true')"
  done
  serve_page
  contains browser.opens '\"exit_code\":0' "$(call '"open","http://verify.example/"')"
  contains browser.sees Press "$(call '"snapshot","-i"')"
  contains browser.clicks '\"exit_code\":0' "$(call '"click","#button"')"
  contains browser.page-changed was-pressed "$(call '"get","text","#said"')"
  sleep 1
  contains browser.page-ran /ran "$(inside cat /tmp/verify-page.log)"
  lacks browser.page-reaches-no-address /by-address "$(inside cat /tmp/verify-page.log)"
  contains browser.refuses-loopback POLICY_BLOCKED "$(call '"open","http://127.0.0.1:8088/auth"')"
  contains browser.refuses-files '\"exit_code\":126' "$(call '"open","file:///etc/passwd"')"
  contains browser.refuses-scripts '\"exit_code\":126' "$(call '"eval","1"')"
  contains browser.closes '\"exit_code\":0' "$(call '"close"')"
}

# A page inside the container, at the address that the policy gives to verify.example. Its script asks its server twice: by that
# name, which is allowed, and by its address, which is not, as it would ask any other local server.
serve_page() {
  local page='<!doctype html><title>verify</title><button id="button" onclick="said.textContent=`was-pressed`">Press</button><p id="said"></p>
<script>fetch("http://127.0.0.1:8765/by-address", {mode: "no-cors"}).finally(() => fetch("/ran"));</script>'
  inside mkdir -p /tmp/verify-page
  "$engine" exec --user 0 --interactive "$name" sh -c 'cat >/tmp/verify-page/index.html' <<<"$page"
  "$engine" exec --user 0 --detach "$name" sh -c \
    'exec /opt/python3.12/bin/python3 -m http.server 8765 --bind 127.0.0.1 --directory /tmp/verify-page 2>/tmp/verify-page.log'
  local tries
  for tries in $(seq 20); do
    inside curl --silent --fail --output /dev/null http://127.0.0.1:8765/ && return
    sleep 0.5
  done
  fail browser.page-served "after $tries tries"
}

check_server() {
  local number
  # The brackets keep the search from finding itself.
  number=$(inside sh -c 'grep -l -a "browser-shell.stdi[o]" /proc/[0-9]*/cmdline | cut -d / -f 3 | sort -n | head -n 1')
  expect server.runs '[0-9]+' "$number"
  expect server.account 1000 "$(inside stat -c %u "/proc/${number:-none}")"
  # The server is not dumpable, even for its own account, so its command line is read from the hub's file.
  expect server.closed denied "$("$engine" exec --user 1000 "$name" sh -c \
    "[ -d /proc/${number:-none} ] || exit; cat /proc/${number:-none}/environ >/dev/null 2>&1 && echo open || echo denied" 2>/dev/null)"
  expect server.environment '-i BROWSER_SHELL_DRIVER BROWSER_SHELL_STATE_DIR HOME LANG PATH ' \
    "$(inside cat /opt/gem/mcp-hub.json | grep -o -E '"-i"|"[A-Z_]+=' | tr -d '"=' | LC_ALL=C sort | tr '\n' ' ')"
  expect server.audit intact "$("$engine" exec --user 1000 "$name" /opt/browser-shell/bin/browser-shell audit verify \
    --log /var/lib/browser-shell/9222/audit.jsonl >"$scratch/audit" 2>&1 && echo intact || tail -n 1 "$scratch/audit")"
}

# A container with settings that must keep it from starting.
refuses_to_start() { # check, word of the message, flags
  "$engine" run --detach --name "$name-start" "${@:3}" "$image" >/dev/null
  local tries state
  for tries in $(seq 12); do
    state=$("$engine" inspect --format '{{.State.Status}} {{.State.ExitCode}}' "$name-start")
    [[ $state == exited* ]] && break
    sleep 0.5
  done
  if [[ $state == 'exited 1' && $("$engine" logs "$name-start" 2>&1) == *"$2"* ]]; then pass "$1"; else fail "$1" "$state after $tries looks"; fi
  "$engine" rm --force --volumes "$name-start" >/dev/null 2>&1
}

check_start() {
  refuses_to_start start.without-key JWT_PUBLIC_KEY --env JWT_PUBLIC_KEY=' '
  refuses_to_start start.unreadable-key JWT_PUBLIC_KEY --env JWT_PUBLIC_KEY=bm90IGEga2V5
  refuses_to_start start.tickets-for-ever TICKET_TTL_SECONDS --env "JWT_PUBLIC_KEY=$(base64 -w0 <"$scratch/own.pub")" --env TICKET_TTL_SECONDS=0
  refuses_to_start start.proxy PROXY_SERVER --env "JWT_PUBLIC_KEY=$(base64 -w0 <"$scratch/own.pub")" --env PROXY_SERVER=true
}

start
for group in $groups; do
  declare -F "check_$group" >/dev/null || { echo "verify: there is no group $group" >&2; exit 2; }
  "check_$group"
done
echo "$((passed + failed)) checks, $failed failed"
[ "$failed" = 0 ]
