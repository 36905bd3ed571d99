#!/bin/bash
exec /opt/gem/await-ports.sh "${WAIT_PORTS:-$GEM_SERVER_PORT,$BROWSER_REMOTE_DEBUGGING_PORT}" /usr/sbin/nginx -c /opt/gem/nginx.conf -g 'daemon off;'
