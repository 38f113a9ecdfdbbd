#!/bin/sh
# make golden: rewrites every golden file, vector and generated table with what the code
# makes now, and lists what changed. It finds the packages by the flag -update of their
# tests; TestHouseGolden checks that it finds all.
#   scripts/golden.sh [--list]   --list prints the packages
set -u
cd "$(dirname "$0")/.." || exit 1
files=$(grep -lrE --include='*_test.go' 'flag\.Bool\("update"|testkit\.(Update|Golden[A-Za-z]*)\(' cmd schemas testdata bpf)
packages=$(echo "$files" | xargs -n 1 dirname | LC_ALL=C sort -u)
if [ "${1:-}" = --list ]; then
	echo "$packages"
	exit
fi
bad=0
for package in $packages; do
	only=.
	if [ "$package" = cmd ]; then # most of its tests measure real runs
		only=$(echo "$files" | grep '^cmd/[^/]*$' | xargs sed -n 's/^func \(Test[A-Za-z]*\)(.*/^\1$/p' | paste -sd '|' -)
	fi
	go test -count=1 -run "$only" "./$package" -update || bad=1
done
git --no-pager diff --stat -- '*testdata/*' schemas
exit $bad
