#!/bin/sh
# Install the Debian packages of the image with the dependencies they need at run time. Runs as root inside the build.
set -eu

packages="chromium tigervnc-standalone-server matchbox-window-manager python3 ca-certificates tzdata
  fonts-liberation fonts-wqy-microhei fonts-noto-ui-core fonts-noto-color-emoji"

candidate() { apt-cache policy "$1" | sed -n 's/^  Candidate: //p'; }

# Some dependencies are unused here: software OpenGL (LLVM), Perl for start scripts, GTK dialogs, a message bus, a login daemon.
# An empty package provides their names, so apt does not install them (about 350 MB). The package database stays consistent,
# and a derived image can still install the real packages.
provide_unused_names() {
  mesa=$(candidate libgbm1)
  perl=$(candidate perl-base | sed 's/-.*//')
  gtk=$(candidate libgtk-3-0t64)
  mkdir -p /tmp/stub/DEBIAN
  cat > /tmp/stub/DEBIAN/control <<CONTROL
Package: browser-shell-unused
Version: 1
Architecture: $(dpkg --print-architecture)
Multi-Arch: allowed
Maintainer: browser-shell
Description: Names of packages that the browser of this image does not use
Provides: mesa-libgallium (= $mesa), libgl1-mesa-dri (= $mesa), libglx-mesa0 (= $mesa), libglx-vendor,
 libegl-mesa0 (= $mesa), mesa-vulkan-drivers (= $mesa),
 x11-utils, xdg-utils, perl (= $perl), libfile-readbackwards-perl (= 9), libgtk-3-0t64 (= $gtk),
 default-dbus-session-bus, dbus-session-bus, default-logind, logind, libpam-systemd,
 dconf-gsettings-backend, gsettings-backend, xdg-desktop-portal-backend
CONTROL
  dpkg-deb --build /tmp/stub /tmp/stub.deb >/dev/null
  dpkg --install /tmp/stub.deb >/dev/null
  rm -rf /tmp/stub /tmp/stub.deb
}

# Base images lack documentation, including licences. Every shipped package gets its licence back.
keep_licences() {
  for package in $(dpkg-query --show --showformat '${Package}\n'); do
    if [ "$package" = browser-shell-unused ] || [ -e "/usr/share/doc/$package/copyright" ]; then continue; fi
    echo "$package"
  done > /tmp/without-licence
  [ -s /tmp/without-licence ] || return 0
  mkdir /tmp/debs
  (cd /tmp/debs && xargs apt-get download -qq < /tmp/without-licence)
  for deb in /tmp/debs/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar --extract --directory / --wildcards './usr/share/doc/*/copyright' 2>/dev/null || true
    # Some documentation folders are links to the folder of another package.
    dpkg-deb --fsys-tarfile "$deb" | tar --list --verbose | sed -n 's|^l.* \./usr/share/doc/\([^/ ]*\) -> \(.*\)$|\1 \2|p' |
      while read -r name target; do [ -e "/usr/share/doc/$name" ] || ln -s "$target" "/usr/share/doc/$name"; done
  done
  rm -rf /tmp/debs /tmp/without-licence
}

# Debian's wrapper and crash reporter of Chromium are never started.
remove_unused_files() {
  find /usr/share/doc -mindepth 2 ! -type d ! -name copyright -delete
  find /usr/share/doc -depth -type d -empty -delete
  rm -rf /usr/share/man /usr/share/info /usr/share/lintian /usr/share/locale /usr/share/bug /usr/share/icons /usr/share/gtk-doc \
    /usr/lib/chromium/chrome_crashpad_handler /usr/lib/chromium/chrome-sandbox /usr/lib/chromium/*.TOC \
    /usr/lib/chromium/libVkLayer_khronos_validation.so /usr/lib/chromium/libVkICD_mock_icd.so \
    /var/lib/apt/lists /var/cache/apt /var/cache/debconf /var/cache/ldconfig /var/log /tmp/* /root /var/lib/dpkg/*-old
  mkdir -p -m 0700 /root
  mkdir -p /var/lib/apt/lists/partial /var/cache/apt/archives/partial /var/log
}

export DEBIAN_FRONTEND=noninteractive
printf 'path-include=/usr/share/doc/*/copyright\n' > /etc/dpkg/dpkg.cfg.d/zz-licences
apt-get update -qq
provide_unused_names
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $packages >/dev/null
keep_licences
apt-get clean
remove_unused_files
# No program changes its user: remove all set-user-id and set-group-id bits.
find / -xdev -type f -perm /6000 -exec chmod a-s {} +
groupadd --gid 1000 browser-shell
useradd --uid 1000 --gid 1000 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin browser-shell
install -d -o 1000 -g 1000 -m 0700 /var/lib/browser-shell
install -d -m 0755 /etc/agent-browser /etc/chromium
