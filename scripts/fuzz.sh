#!/bin/sh
# make fuzz: every fuzz target in turn, for the time given. A crash leaves its
# input under the package's testdata/fuzz, which then runs with every test.
#   scripts/fuzz.sh TIME
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
for pkg in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$pkg" | grep '^Fuzz'); do
		echo "$pkg $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$pkg" || bad=1
	done
done
exit $bad
