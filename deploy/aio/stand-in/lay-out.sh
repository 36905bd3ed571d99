#!/bin/sh
# Puts the programs where AIO has them, under AIO's names.
set -eu
programs=/usr/lib/aio-stand-in
chmod -R a+rX /opt/gem "$programs"
chmod a+x /opt/gem/*.sh "$programs"/*
ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/bin/npm
mkdir -p /opt/python3.12/bin /opt/jupyter /opt/aio /opt/terminal /opt/novnc/app /etc/browser/policies/managed /usr/lib/code-server/bin
ln -s /usr/bin/python3 /opt/python3.12/bin/python3

# Packages of npm: a folder each, and a link on the path.
for name in mcp-hub mcp-server-browser chrome-devtools-mcp; do
  mkdir -p "/usr/lib/node_modules/$name/bin"
done
cp "$programs/mcp-hub.cjs" /usr/lib/node_modules/mcp-hub/bin/mcp-hub.cjs
ln -s ../lib/node_modules/mcp-hub/bin/mcp-hub.cjs /usr/bin/mcp-hub
for name in mcp-server-browser chrome-devtools-mcp; do
  cp "$programs/service.py" "/usr/lib/node_modules/$name/bin/$name"
  ln -s "../lib/node_modules/$name/bin/$name" "/usr/bin/$name"
done
for name in gem-server python-server; do ln -s "$programs/service.py" "/usr/local/bin/$name"; done
cp "$programs/service.py" /opt/python3.12/bin/jupyter-lab
cp "$programs/service.py" /usr/lib/code-server/bin/code-server
ln -s ../lib/code-server/bin/code-server /usr/bin/code-server
ln -s "$programs/websocat.py" /usr/local/bin/websocat
# Debian's wrapper adds flags of its own; AIO's does not.
ln -s /usr/lib/chromium/chromium /usr/local/bin/browser
ln -s /etc/browser/policies/managed /etc/chromium/policies/managed 2>/dev/null || {
  rm -rf /etc/chromium/policies && mkdir -p /etc/chromium/policies && ln -s /etc/browser/policies/managed /etc/chromium/policies/managed
}

echo '<!doctype html><title>stand-in for the AIO dashboard</title>' >/opt/aio/index.html
echo '<!doctype html><title>stand-in for the terminal</title>' >/opt/terminal/index.html
echo '<!doctype html><title>stand-in for noVNC</title><script type="module" src="app/ui.js"></script>' >/opt/novnc/index.html
echo 'export {};' >/opt/novnc/app/ui.js
echo '{"name": "stand-in"}' >/opt/novnc/package.json
echo 1.0.0.152-stand-in >/etc/aio_version
