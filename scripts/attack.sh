#!/bin/sh
# make attack: tries to get false records (testdata/attacks), compares the record of random
# programs with strace, and writes the results and the table. As root.
#   scripts/attack.sh [NAME…]   with names or classes, prints the results of these attacks
#   scripts/attack.sh --marks   prints how many lines of ordinary programs are in doubt
#   CALLS=N SEED=N              how many random calls (1,000,000; 0: none), and from which seed
set -eu
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ]; then
	echo "attack: error: needs root" >&2
	exit 4
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
CGO_ENABLED=0 go build -trimpath -o "$dir/" ./cmd/... ./testdata/attacks
if [ "${1:-}" = --marks ]; then
	"$dir/attacks" marks "$dir"
	exit
fi
if [ $# -gt 0 ]; then
	"$dir/attacks" check "$dir" "$@"
	exit
fi
kernel=$(uname -r | cut -d. -f1,2)
bad=0
"$dir/attacks" check "$dir" >"$dir/results" || bad=1
if ! command -v strace >/dev/null; then
	echo "SKIPPED, NOT TESTED: random programs: strace is not installed"
elif [ "${CALLS:-1000000}" != 0 ]; then
	"$dir/attacks" differ "$dir" "${CALLS:-1000000}" "${SEED:-1}" >>"$dir/results" || bad=1
fi
"$dir/attacks" merge "testdata/attacks/results/$kernel.ndjson" <"$dir/results"
go test ./testdata/attacks -update || bad=1
exit $bad
