#!/bin/bash
# Waits until every port of a list answers, for WAIT_TIMEOUT seconds, then becomes the program that follows.
#   await-ports.sh 8088,9222 program arguments
from=$SECONDS
for port in ${1//,/ }; do
  until nc -z localhost "$port"; do
    [ $((SECONDS - from)) -lt "${WAIT_TIMEOUT:-300}" ] || { echo "timeout: $port" >&2; exit 1; }
    sleep "${WAIT_INTERVAL:-2}"
  done
done
exec "${@:2}"
