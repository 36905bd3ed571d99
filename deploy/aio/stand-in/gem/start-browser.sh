#!/bin/bash
readarray -t words < <(xargs -n1 printf '%s\n' <<<"$BROWSER_COMMANDLINE_ARGS $BROWSER_EXTRA_ARGS")
exec "$BROWSER_EXECUTABLE_PATH" --user-data-dir="/home/$USER/.config/browser" "${words[@]}"
