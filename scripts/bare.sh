#!/bin/sh
# make test-bare: runs make demo and make test as root on a bare machine: a root made by debootstrap,
# with nothing but the essential packages, git, make and this machine's Go. The tree is a clone
# of the last commit; it must be clean afterwards, and no message may name a folder that a
# newcomer does not have.
#   scripts/bare.sh [--cold]   --cold begins with an empty build cache, as a newcomer does
#   exit 0 both pass, 1 not, 40 could not be tested here
# DEBIAN_SUITE and DEBIAN_MIRROR choose what is installed; ROOT=DIR keeps the root for another time.
set -eu
cd "$(dirname "$0")/.."
skip() { echo "SKIPPED, NOT TESTED: the first two commands on a bare machine: $*" && exit 40; }
[ "$(uname -s)" = Linux ] || skip "only Linux has the privileged tests"
[ "$(id -u)" = 0 ] || skip "debootstrap needs root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
root=${ROOT:-$(mktemp -d)}
log=$(mktemp)
trap 'rm -f "$log"; [ -n "${ROOT:-}" ] || rm -rf --one-file-system "$root"' EXIT
trap 'exit 1' HUP INT TERM
[ -x "$root/usr/bin/make" ] || debootstrap --variant=minbase --include=git,make "${DEBIAN_SUITE:-stable}" "$root" \
	"${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$log" 2>&1 || skip "debootstrap: $(tail -n 1 "$log")"
go mod download
rm -rf "${root:?}$PWD"
git clone -q "file://$PWD" "$root$PWD"
cache=$(go env GOCACHE)
[ "${1:-}" != --cold ] || cache=
unshare --mount --propagation private sh scripts/lib/in-root.sh "$root" "$PWD" "$(go env GOROOT)" "$(go env GOMODCACHE)" "$cache" 2>&1 |
	tee "$log"
bad=0
must() { # must WHAT COMMAND…
	what=$1
	shift
	"$@" || { echo "FAIL  $what" && bad=1; }
}
# shellcheck disable=SC2317 # called through must
absent() { ! grep "$1" "$log"; }
must "both commands pass" grep -q '^both commands passed' "$log"
must "the root is bare" absent '^NOT BARE'
must "the tree is clean afterwards" absent '^LEFT BEHIND'
must "no folder that a newcomer does not have" absent '\.\./shared'
exit $bad
