#!/bin/sh
# Takes out of AIO's image what the overlay does without: programs, their start, their routes. Fails on an image that is laid out in
# another way than the one that it was written for (generation 1.0.0.152), and when anything is left.
set -eu
gem=/opt/gem
fail() { echo "take-away: $*" >&2; exit 1; }

for path in run.sh entrypoint.sh mcp-hub-wait.sh mcp-hub.json.template nginx.conf nginx-server-with-auth.conf supervisord.conf \
  supervisord/browser.conf supervisord/srv.conf supervisord/vnc.conf; do
  [ -f "$gem/$path" ] || fail "$gem/$path is missing: this is not an AIO image of the generation 1.0.0.152"
done
for program in /usr/bin/mcp-hub /usr/local/bin/gem-server /usr/local/bin/websocat /usr/bin/Xvnc /usr/sbin/nginx; do
  [ -x "$program" ] || fail "$program is missing: this is not an AIO image of the generation 1.0.0.152"
done

# Programs. Those that came with npm or lie in a folder of their own go with the folder.
unwanted="mcp-server-browser chrome-devtools-mcp tinyproxy gost code-server jupyter jupyter-lab jupyter-notebook jupyter-server sudo"
places="/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /opt/*/bin"
for name in $unwanted; do
  for place in $places; do
    [ -e "$place/$name" ] || [ -L "$place/$name" ] || continue
    program=$(readlink -f "$place/$name" || true)
    rm -f "$place/$name"
    case $program in
      */node_modules/@*/*) folder=${program%%/node_modules/@*}/node_modules/$(echo "${program#*/node_modules/}" | cut -d / -f 1-2) ;;
      */node_modules/*) folder=${program%%/node_modules/*}/node_modules/$(echo "${program#*/node_modules/}" | cut -d / -f 1) ;;
      */code-server*/bin/*) folder=${program%/bin/*} ;;
      *) folder= ;;
    esac
    [ -z "$folder" ] || rm -rf "$folder"
    # A link may lead to a program that others share under other names; one of its own name is its own.
    case ${program##*/} in "$name"*) rm -f "$program" ;; esac
  done
done
for package in jupyterlab jupyter_server notebook nbclassic jupyterlab_server; do
  rm -rf /opt/python3*/lib/python3*/site-packages/"$package" /opt/python3*/lib/python3*/site-packages/"$package"-*.dist-info
done
rm -rf /usr/lib/code-server /usr/local/lib/code-server /opt/code-server
# AIO's start copies or hands over these folders and stops when one is missing, so they stay, empty.
for folder in /opt/jupyter $gem/vscode $gem/jupyter; do
  rm -rf "$folder" && mkdir -p "$folder"
done
rm -rf $gem/tinyproxy $gem/gost.yaml $gem/tinyproxy.sh $gem/jupyter-lab.sh $gem/code-server.sh /opt/terminal /opt/aio

# What is started: AIO's browser and window manager as they are, and what the overlay brings.
for file in $gem/supervisord/*.conf; do
  case ${file##*/} in browser.conf | openbox.conf) ;; *) rm -f "$file" ;; esac
done
rm -f $gem/supervisord.mcp.conf
: >$gem/mcp.disabled

# Routes. The overlay's nginx reads none of these; AIO's start renders them, so each stays as an empty file.
rm -f $gem/nginx/*.conf
for file in $gem/nginx*.conf $gem/nginx*.conf.template; do
  [ -f "$file" ] && echo "# Taken away: /opt/browser-shell/aio/nginx.conf is what counts." >"$file"
done

for name in $unwanted; do
  ! command -v "$name" >/dev/null 2>&1 || fail "$name is still there: $(command -v "$name")"
done
