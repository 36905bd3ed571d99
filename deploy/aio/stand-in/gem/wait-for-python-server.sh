#!/bin/bash
[ "${FASTAPI_WAIT_SKIP:-0}" = 0 ] || exec "$@"
for _ in $(seq 10); do
  curl --silent --fail --max-time 2 "http://127.0.0.1:$SANDBOX_SRV_PORT/health" >/dev/null && exec "$@"
  sleep 1
done
exit 111
