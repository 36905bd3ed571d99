#!/bin/bash
# Second stage of AIO's start: directories, the web server's files by whether there is a key, then supervisord.
set -e
mkdir -p /tmp/.X11-unix "$LOG_DIR" "$XDG_RUNTIME_DIR" /var/lib/nginx
chmod 1777 /tmp/.X11-unix "$LOG_DIR" /var/lib/nginx
chown "$USER" "$XDG_RUNTIME_DIR"
su "$USER" -c 'touch "$HOME/.Xauthority" && mkdir -p "$HOME/.config/browser/Default" && cp /opt/gem/preferences.json "$HOME/.config/browser/Default/Preferences"'
if [ -n "$(echo -n "$JWT_PUBLIC_KEY" | xargs)" ]; then
  envsubst '${PUBLIC_PORT} ${AUTH_BACKEND_PORT} ${GEM_SERVER_PORT}' </opt/gem/nginx-server-with-auth.conf >/opt/gem/nginx-server-active.conf
else
  envsubst '${PUBLIC_PORT}' </opt/gem/nginx-server-without-auth.conf >/opt/gem/nginx-server-active.conf
fi
envsubst '${BROWSER_REMOTE_DEBUGGING_PORT}' </opt/gem/nginx.legacy.conf >/opt/gem/nginx/legacy.conf
envsubst '${GEM_SERVER_PORT}' </opt/gem/nginx.srv.conf >/opt/gem/nginx/srv.conf
envsubst '${WEBSOCKET_PROXY_PORT}' </opt/gem/nginx.vnc.conf >/opt/gem/nginx/vnc.conf
if [ ! -f /opt/gem/mcp.disabled ]; then
  cp /opt/gem/supervisord.mcp.conf /opt/gem/supervisord/mcp.conf
fi
exec /usr/bin/supervisord -n -c /opt/gem/supervisord.conf
