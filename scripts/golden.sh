#!/bin/sh
# make golden: rewrites every golden file, vector and generated table with what the code
# makes now, and lists what changed. It finds the packages by the flag -update of their
# tests; TestHouseGolden checks that it finds all.
#   scripts/golden.sh [--list]   --list prints the packages
set -u
cd "$(dirname "$0")/.." || exit 1
packages=$(grep -lrE --include='*_test.go' 'flag\.Bool\("update"|testkit\.(Update|Golden[A-Za-z]*)\(' cmd schemas testdata bpf | xargs -n 1 dirname | LC_ALL=C sort -u)
if [ "${1:-}" = --list ]; then
	echo "$packages"
	exit
fi
bad=0
for package in $packages; do
	only=.
	[ "$package" != cmd ] || only='Golden|Pipelines' # the other tests there measure real runs
	go test -count=1 -run "$only" "./$package" -update || bad=1
done
git --no-pager diff --stat -- '*testdata/*' schemas
exit $bad
