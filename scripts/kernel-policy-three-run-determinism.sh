#!/bin/sh
# Three measured runs: kernel and policy.
#   exit 0 same, 1 different, 40 could not be tested here
set -eu
# shellcheck source=scripts/calls.sh
. "$(dirname "$0")/calls.sh"
# shellcheck source=scripts/scenarios.sh
. scripts/scenarios.sh
three_runs kernel_policy
for n in 1 2 3; do
	kernel_policy "pids$n" --canonical-pids >/dev/null
	gzip -dc "$archive" | sha256sum >"$tmp/pids$n"
	cmp "$tmp/pids1" "$tmp/pids$n" || { echo "FAIL  the whole tar of run $n differs" && exit 1; }
done
echo "ok    whole tar with --canonical-pids: $(cut -c1-64 "$tmp/pids1")"
