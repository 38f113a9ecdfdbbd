#!/bin/sh
# make test: all tests except those in scripts/lib/more-tests, which make test-more runs
# (--more), with go vet and the tools on other kernels. As root on a kernel that can be observed,
# the privileged tests run too, and a skip of one is a failure. The skipped tests are listed
# last, so that nobody overlooks them. RUNNER_REQUIRE_BPF=1 requires the privileged tests even
# if the probe says that this kernel cannot be observed.
#   scripts/test.sh [--more] [GO-TEST-FLAG…]
set -u
cd "$(dirname "$0")/.." || exit 1
log=$(mktemp) && status=$(mktemp) || exit 1
trap 'rm -f "$log"* "$status"*' EXIT
packages="./... ./testdata/bench ./testdata/hostile ./testdata/attacks ./testdata/kernels/..."
names="^($(sed -n 's/^\(Test[A-Za-z0-9]*\) .*/\1/p' scripts/lib/more-tests | paste -sd '|' -))\$"
choice=-skip
sh scripts/needs.sh test
if [ "${1:-}" = --more ]; then
	shift
	choice=-run
	sh scripts/needs.sh more
	# shellcheck disable=SC2086 # a list
	go vet $packages ./testdata/workload/... || exit 1
fi

if [ "$(id -u)" = 0 ]; then
	if reason=$(bin/runner-capture --probe 2>&1); then
		RUNNER_REQUIRE_BPF=1
		export RUNNER_REQUIRE_BPF
		echo "privileged tests: included, a skip is a failure"
	else
		echo "privileged tests: NOT RUN, this kernel cannot be observed: $reason"
	fi
else
	echo "privileged tests: NOT RUN, they need root: sudo make test"
fi
echo "building the tests; each is named when it has ended"

# -count=1: the test cache does not know the kernel, which is an input. A test that passed
# shows only its t.Log lines, any other test shows everything.
{
	# shellcheck disable=SC2086 # a list
	go test -v -count=1 -timeout 40m "$choice" "$names" "$@" $packages 2>&1
	echo $? >"$status"
} | tee "$log" | awk -f scripts/lib/progress.awk

if [ "$choice" = -run ]; then # RUNNER_REQUIRE_KERNELS=1 fetches other kernels, and fails without
	sh scripts/lib/other-kernels.sh "$log" || echo 1 >"$status"
fi

echo
echo "passed: $(grep -ac '^ *--- PASS' "$log")  failed: $(grep -ac '^ *--- FAIL' "$log")  skipped: $(grep -ac '^ *--- SKIP' "$log")"
grep -av '^ *> ' "$log" | grep -ao 'SKIPPED, NOT TESTED: .*' | sort | uniq -c
[ "$choice" = -run ] || echo "left to make test-more: $(grep -c '^Test' scripts/lib/more-tests) longer tests (scripts/lib/more-tests says why), and other kernels"
exit "$(cat "$status")"
