#!/bin/sh
# Attacks the observer from inside of the cgroup (testdata/hostile), with and without --harden,
# and writes what became of each record, and the table. As root. Only attacks that leave the
# machine alone; the others need one of their own, see testdata/hostile/README.md.
#   scripts/hostile.sh [NAME…]   with names, prints the results of these attacks
set -eu
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ]; then
	echo "hostile: error: needs root" >&2
	exit 4
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
CGO_ENABLED=0 go build -trimpath -o "$dir/" ./cmd/... ./testdata/hostile
if [ $# -gt 0 ]; then
	"$dir/hostile" check "$dir" --gentle "$@"
	"$dir/hostile" check "$dir" --gentle --harden "$@"
	exit
fi
kernel=$(uname -r | cut -d. -f1,2)
bad=0
"$dir/hostile" check "$dir" --gentle >"$dir/results" || bad=1
"$dir/hostile" check "$dir" --gentle --harden >>"$dir/results" || bad=1
"$dir/hostile" merge "testdata/hostile/results/$kernel.ndjson" <"$dir/results"
go test ./testdata/hostile -update || bad=1
exit $bad
