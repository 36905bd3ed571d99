#!/usr/bin/env bash
# First stage of AIO's start: account, home, settings of what the image has. The steps that fail when a folder is missing are AIO's.
set -e
getent group "$USER" >/dev/null || groupadd --gid "$USER_GID" "$USER"
id -u "$USER" >/dev/null 2>&1 || useradd --uid "$USER_UID" --gid "$USER" --shell /bin/bash --create-home "$USER"
if [ -w /etc/sudoers.d ]; then
  echo "$USER ALL=(ALL) NOPASSWD:ALL" >"/etc/sudoers.d/$USER"
  chmod 440 "/etc/sudoers.d/$USER"
fi
chown -R "$USER:$USER" /opt/jupyter
mkdir -p "/home/$USER/.config/code-server"
cp -f /opt/gem/bashrc "/home/$USER/.bashrc"
cp -rf /opt/gem/vscode "/home/$USER/.config/code-server/vscode"
cp -rf /opt/gem/jupyter "/home/$USER/.jupyter"
render() { # variables, snippet
  local template=/opt/gem/nginx/nginx.$2.conf
  [ ! -f "$template" ] || { envsubst "$1" <"$template" >"/opt/gem/nginx/$2.conf" && rm "$template"; }
}
render '${MCP_HUB_PORT} ${SANDBOX_SRV_PORT}' python_srv
render '${MCP_HUB_PORT}' mcp_hub
render '${JUPYTER_LAB_PORT}' jupyter_lab
render '${CODE_SERVER_PORT}' code_server
if [ -f /opt/gem/mcp-hub.json.template ]; then
  envsubst '${SANDBOX_SRV_PORT} ${MCP_SERVER_BROWSER_PORT} ${BROWSER_REMOTE_DEBUGGING_PORT}' \
    </opt/gem/mcp-hub.json.template >/opt/gem/mcp-hub.json && rm /opt/gem/mcp-hub.json.template
fi
chown -R "$USER:$USER" "/home/$USER"
mkdir -p "$LOG_DIR"

autostart() { [ "$1" = true ] && echo false || echo true; }
export AUTOSTART_JUPYTER AUTOSTART_CODE_SERVER
AUTOSTART_JUPYTER=$(autostart "$DISABLE_JUPYTER")
AUTOSTART_CODE_SERVER=$(autostart "$DISABLE_CODE_SERVER")
export HOMEPAGE=${HOMEPAGE:-}
export BROWSER_NO_SANDBOX=${BROWSER_NO_SANDBOX:---no-sandbox}
export BROWSER_EXTRA_ARGS="$BROWSER_NO_SANDBOX --lang=en-US --window-position=0,0 --window-size=$DISPLAY_WIDTH,$DISPLAY_HEIGHT $BROWSER_EXTRA_ARGS"
envsubst '${PUBLIC_PORT}' </opt/gem/nginx-server-port-proxy.conf.template >/opt/gem/nginx-server-port-proxy.conf

PROXY_SERVER=$(echo -n "$PROXY_SERVER" | xargs)
if [ -n "$PROXY_SERVER" ]; then
  [ -f /opt/gem/tinyproxy/base.conf ] || { echo "ERROR: /opt/gem/tinyproxy/base.conf is required" >&2; exit 1; }
  envsubst '${TINYPROXY_PORT}' </opt/gem/tinyproxy/base.conf >/etc/tinyproxy.conf
  [ "$PROXY_SERVER" = true ] || echo "Upstream http ${PROXY_SERVER#http://}" >>/etc/tinyproxy.conf
  export BROWSER_EXTRA_ARGS="$BROWSER_EXTRA_ARGS --proxy-server=http://127.0.0.1:$TINYPROXY_PORT"
else
  rm -f /opt/gem/supervisord/supervisord.tinyproxy.conf
fi
exec /opt/gem/entrypoint.sh
