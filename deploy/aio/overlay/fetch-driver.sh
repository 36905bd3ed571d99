#!/bin/sh
# Fetches agent-browser from npm, refuses any other content than the pinned one, and keeps the binary of this platform.
#   fetch-driver.sh VERSION INTEGRITY DIRECTORY
set -eu
fail() { echo "fetch-driver: $*" >&2; exit 1; }
case $(uname -m) in
  x86_64) binary=agent-browser-linux-x64 ;;
  aarch64) binary=agent-browser-linux-arm64 ;;
  *) fail "browser-shell runs on x86_64 and aarch64, not on $(uname -m)" ;;
esac
scratch=$(mktemp -d)
cd "$scratch"
npm pack --silent "agent-browser@$1" >/dev/null || fail "npm did not deliver agent-browser@$1"
found=sha512-$(openssl dgst -sha512 -binary ./*.tgz | base64 -w0)
[ "$found" = "$2" ] || fail "agent-browser@$1 is not what was pinned: $found"
tar -xzf ./*.tgz
mkdir -p "$3"
install -m 0755 "package/bin/$binary" "$3/agent-browser-$1"
cd / && rm -rf "$scratch"
