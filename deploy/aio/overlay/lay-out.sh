#!/bin/sh
# Puts the overlay's files where AIO's start and Chromium look for them.
set -eu
from=/opt/browser-shell-overlay
to=/opt/browser-shell/aio
mkdir -p "$to"
install -m 0644 "$from/start.py" "$from/health.py" "$from/nginx.conf" "$from/loopback-only.cjs" "$from/mcp-hub.json.template" "$to/"
rm -f /opt/gem/mcp-hub.json /opt/gem/mcp-hub.json.template
install -m 0644 "$from/supervisord.conf" /opt/gem/supervisord/browser-shell.conf
# The audit log; of the account that AIO makes at its start.
install -d -m 0700 -o 1000 -g 1000 /var/lib/browser-shell
# Chromium's second lock, in the places of the three builds that AIO has shipped.
for folder in /etc/browser /etc/chromium /etc/opt/chrome; do
  /opt/browser-shell/bin/python -I -c '
import pathlib, sys
from browser_shell.browser.chromium.managed_policy import managed_policy, write_managed_policy
write_managed_policy(pathlib.Path(sys.argv[1]), managed_policy(("http", "https")))
' "$folder"
done
