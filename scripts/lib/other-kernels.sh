#!/bin/sh
# Called by scripts/test.sh: the tools on other kernels, if these are here. With
# RUNNER_REQUIRE_KERNELS=1 they are fetched, and a machine that cannot boot them is a failure.
#   other-kernels.sh LOG   a skip is added to LOG
set -u
cached=-cached
[ "${RUNNER_REQUIRE_KERNELS:-}" != 1 ] || cached=
out=$(mktemp) || exit 1
trap 'rm -f "$out"*' EXIT
# shellcheck disable=SC2086 # no word, if empty
{
	sh scripts/kernels.sh $cached ci 2>&1
	echo $? >"$out.status"
} | tee "$out"
case $(cat "$out.status"):$cached in
0:*) ;;
4:-cached) echo "SKIPPED, NOT TESTED: the tools on other kernels: $(grep '^kernels: error' "$out"); make test-kernels fetches and boots them" >>"$1" ;;
*) exit 1 ;;
esac
