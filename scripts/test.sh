#!/bin/sh
# make test: go vet, then all tests. As root on a kernel that can be observed, the privileged
# tests run too, and a skip of one is a failure. The skipped tests are listed last, so that
# nobody overlooks them. RUNNER_REQUIRE_BPF=1 requires the privileged tests even if the
# probe says that this kernel cannot be observed.
set -u
cd "$(dirname "$0")/.." || exit 1
log=$(mktemp) && status=$(mktemp) || exit 1
trap 'rm -f "$log"* "$status"*' EXIT

go vet ./... ./testdata/workload/... ./testdata/kernels/... ./testdata/bench ./testdata/hostile ./testdata/attacks || exit 1

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

# -count=1: the test cache does not know the kernel, which is an input. A test that passed
# shows only its t.Log lines, any other test shows everything.
{
	go test -v -count=1 -timeout 40m "$@" ./... ./testdata/bench ./testdata/hostile ./testdata/attacks ./testdata/kernels/... 2>&1
	echo $? >"$status"
} | tee "$log" | awk '
	function all(  i) { for (i = 0; i < n; i++) print held[i]; n = 0 }
	/^=== / || /^ +--- PASS/ || /^PASS$/ { next }
	/^--- PASS/ {
		for (i = 0; i < n; i++) if (held[i] ~ /^ +[a-z0-9_]+_test\.go:[0-9]+: /) print held[i]
		n = 0; print; fflush(); next
	}
	/^[^ ]/ || /^ +--- / { all(); print; fflush(); next }
	{ held[n++] = $0 }
	END { all() }'

# Other kernels, if they are here. RUNNER_REQUIRE_KERNELS=1 fetches them, and fails without.
cached=-cached
[ "${RUNNER_REQUIRE_KERNELS:-}" = 1 ] && cached=
{
	sh scripts/kernels.sh $cached ci 2>&1
	echo $? >"$status.kernels"
} | tee "$log.kernels"
case $(cat "$status.kernels"):$cached in
0:*) ;;
4:-cached) echo "SKIPPED, NOT TESTED: the tools on other kernels: $(grep '^kernels: error' "$log.kernels"); make test-kernels fetches and boots them" >>"$log" ;;
*) echo 1 >"$status" ;;
esac

echo
echo "passed: $(grep -c '^ *--- PASS' "$log")  failed: $(grep -c '^ *--- FAIL' "$log")  skipped: $(grep -c '^ *--- SKIP' "$log")"
grep -v '^ *> ' "$log" | grep -o 'SKIPPED, NOT TESTED: .*' | sort | uniq -c
exit "$(cat "$status")"
