#!/bin/sh
# make deb: a Debian package with the tools, manual pages and completions, in bin/.
# OUT=DIR is another place, BIN=DIR has tools that are built already, COMPRESS=none|gzip|xz.
#   scripts/deb.sh [GROUP]   with GROUP, its members may run runner-capture, which then has the
#                            capabilities that it needs, and nobody else may; else it needs root
set -eu
cd "$(dirname "$0")/.."
group=${1:-}
case $group in *[!a-z0-9_-]*) echo "deb: error: $group is no name of a group" >&2 && exit 2 ;; esac
for tool in dpkg-deb git; do
	command -v $tool >/dev/null || { echo "deb: error: $tool is not installed" >&2 && exit 4; }
done
arch=$(dpkg --print-architecture)
version=0.$(git log -1 --format=%cd --date=format:%Y%m%d).$(git rev-list --count HEAD)+$(git rev-parse --short=12 HEAD)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
umask 022
install -d "$dir/usr/bin"
if [ -n "${BIN:-}" ]; then
	for folder in cmd/runner-*; do install -m 755 "$BIN/$(basename "$folder")" "$dir/usr/bin"; done
else
	make -s build TO="$dir/usr/bin/" LINK="-s -w" # without what only a debugger reads
fi
BIN=$dir/usr/bin sh scripts/manual.sh "$dir/usr/share"
# Debian's place for zsh functions of packages
mkdir -p "$dir/usr/share/zsh/vendor-completions" "$dir/usr/share/doc/runner-evidence" "$dir/DEBIAN"
mv "$dir"/usr/share/zsh/site-functions/* "$dir/usr/share/zsh/vendor-completions/" && rmdir "$dir/usr/share/zsh/site-functions"
gzip -9n "$dir"/usr/share/man/man1/*.1
cp LICENSE "$dir/usr/share/doc/runner-evidence/copyright"
cp README.md "$dir/usr/share/doc/runner-evidence/"
mkdir "$dir/usr/share/doc/runner-evidence/schemas" && cp schemas/*.md "$dir/usr/share/doc/runner-evidence/schemas/"
cat >"$dir/DEBIAN/control" <<EOT
Package: runner-evidence
Version: $version
Architecture: $arch
Maintainer: The runner developers <runner@invalid>
Section: devel
Priority: optional
Installed-Size: $(du -sk "$dir/usr" | cut -f1)
${group:+Depends: libcap2-bin, passwd
}Description: measures what a command really did
 Runs a command in a cgroup of its own, records with eBPF what the kernel saw of it, and writes an
 archive that anyone can verify.
EOT
if [ -n "$group" ]; then
	cat >"$dir/DEBIAN/postinst" <<EOT
#!/bin/sh
set -e
[ "\$1" = configure ] || exit 0
getent group $group >/dev/null || groupadd --system $group
chgrp $group "\$DPKG_ROOT/usr/bin/runner-capture"
chmod 0750 "\$DPKG_ROOT/usr/bin/runner-capture"
setcap cap_bpf,cap_perfmon,cap_net_admin=ep "\$DPKG_ROOT/usr/bin/runner-capture"
EOT
	chmod 755 "$dir/DEBIAN/postinst"
fi
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) dpkg-deb --root-owner-group -Z"${COMPRESS:-xz}" -z1 --build "$dir" "${OUT:-bin}/runner-evidence_${version}_$arch.deb"
