#!/bin/sh
# make fuzz: runs each fuzz target for TIME. A crash leaves its input in the package's
# testdata/fuzz, and every later test run tries it. By default an input is made smaller
# for up to a minute, which with large inputs is longer than TIME: 10 tries must do.
#   scripts/fuzz.sh TIME
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
ran=0
packages=$(go list ./...) || exit 1
for pkg in $packages; do
	# a package that does not build is an error, not a package without targets
	listed=$(go test -list '^Fuzz' "$pkg") || { echo "$listed" && bad=1 && continue; }
	for target in $(echo "$listed" | grep '^Fuzz'); do
		echo "$pkg $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 10x "$pkg" || bad=1
		ran=$((ran + 1))
	done
done
echo "fuzzed: $ran targets for $1 each"
[ $ran -gt 0 ] || bad=1
exit $bad
