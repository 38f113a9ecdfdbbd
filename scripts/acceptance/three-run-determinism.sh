#!/bin/sh
# Measures one scenario three times. All members except the kernel layer, which holds process
# ids, must have the same bytes. Where the program's system calls are always the same,
# the whole tar must too, with --canonical-pids.
#   scripts/acceptance/three-run-determinism.sh SCENARIO | --list
#   exit 0 same, 1 different, 40 could not be tested here
set -eu
scenarios="kernel-only kernel-policy sdk-contract sdk-policy sdk-policy-mismatch
openai-agents-kernel-policy openai-agents-sdk-policy openai-agents-sdk-policy-mismatch"
[ "${1:-}" != --list ] || { echo "$scenarios" | tr ' ' '\n' && exit; }
case " $(echo "$scenarios" | tr '\n' ' ') " in
*" ${1:-} "*) ;;
*) echo "usage: $0 SCENARIO, one of: $scenarios" >&2 && exit 2 ;;
esac
required=cgroup=clean
# shellcheck disable=SC2034 # measure.sh
[ "$1" != openai-agents-sdk-policy ] || kernel=not_needed required=kernel=absent,cgroup=partial
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/scenarios.sh
. scripts/lib/scenarios.sh
# shellcheck source=scripts/lib/three-runs.sh
. scripts/lib/three-runs.sh
run=$1-three-run-determinism
scenario=$(echo "$1" | tr - _)

case $1 in openai-agents-*) need_agents ;; esac
three_runs "$scenario" "$required"
case $1 in kernel-only | kernel-policy) three_canonical_runs "$scenario" ;; esac
