#!/bin/sh
# make test-bare: runs a newcomer's first commands as root on a bare machine: a root made by
# debootstrap, with nothing but the essential packages, git, make and this machine's Go. The tree is
# a clone of the last commit; it must be clean afterwards, and no message may name a folder that a
# newcomer does not have. However this ends, no process, mount or folder of it is left.
#   scripts/bare.sh [--cold]   --cold begins with an empty build cache, as a newcomer does
#   exit 0 all pass, 1 not, 40 could not be tested here
# The Debian mirror and the proxy are those of this machine's apt, and DEBIAN_MIRROR; modules are
# those that go fetched. DEBIAN_SUITE chooses the release; ROOT=DIR keeps the root for another time.
set -eu
cd "$(dirname "$0")/.."
skip() { echo "SKIPPED, NOT TESTED: the first commands on a bare machine: $*" && exit 40; }
[ "$(uname -s)" = Linux ] || skip "only Linux has the privileged tests"
[ "$(id -u)" = 0 ] || skip "debootstrap needs root"
for program in debootstrap unshare setsid; do command -v $program >/dev/null || skip "$program is not installed"; done

work=$(cd "$(mktemp -d)" && pwd -P)
log=$work/log
mkdir -p "${ROOT:=$work/root}" && root=$(cd "$ROOT" && pwd -P)
[ "$(stat -c %d:%i "$root")" != "$(stat -c %d:%i /)" ] || { echo "bare: error: ROOT=$ROOT is this machine's own root" && exit 1; }
mkfifo "$work/alive"
setsid sh scripts/lib/clean-root.sh "$work" "$root" <"$work/alive" &
cleaner=$!
exec 9>"$work/alive" # open until this script ends, by whatever signal: the cleaner waits for that
trap 'exec 9>&-; wait $cleaner' EXIT
trap 'exit 1' HUP INT TERM
inside() { # inside COMMAND…: in mounts of its own; a signal ends the wait for it
	unshare --mount --propagation private sh scripts/lib/in-mounts.sh "$work" "$@" &
	wait $!
}

faults='^LEFT BEHIND|\.\./shared'
if [ ! -x "$root/usr/bin/make" ]; then
	faults="$faults|^NOT BARE" # a kept root has what make test installed in it
	began=$(date +%s)
	# shellcheck disable=SC2016 # for apt-get
	mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Origin: Debian' 'Component: main' \
		'Created-By: Packages' 2>/dev/null | awk '$2 !~ /-/ { print $1; exit }')}
	inside debootstrap --variant=minbase --include=git,make "${DEBIAN_SUITE:-stable}" "$root" \
		"${mirror:-http://deb.debian.org/debian}" >"$log" 2>&1 || skip "debootstrap: $(tail -n 1 "$log")"
	apt-config dump 2>/dev/null | grep -i '^Acquire::https\{0,1\}::Proxy' >"$root/etc/apt/apt.conf.d/90proxy" || true
	echo "debootstrap took $(($(date +%s) - began)) seconds"
fi
go mod download
rm -rf "${root:?}$PWD" # the path of this tree: what was built here is not built again
git clone -q "file://$PWD" "$root$PWD"
cache=$(go env GOCACHE)
[ "${1:-}" != --cold ] || cache=
mkfifo "$work/out"
tee "$log" <"$work/out" 9>&- &
tee=$!
inside sh scripts/lib/in-root.sh "$root" "$PWD" "$(go env GOROOT)" "$(go env GOMODCACHE)" "$cache" >"$work/out" 2>&1 || true
wait $tee
bad=0
grep -qa '^all commands passed' "$log" || { echo "FAIL  not all commands passed" && bad=1; }
! grep -aE "$faults" "$log" || { echo "FAIL  these lines must not be there" && bad=1; }
exit $bad
