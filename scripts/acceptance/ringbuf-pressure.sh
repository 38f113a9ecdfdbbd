#!/bin/sh
# Scenario matrix: more events than the ring buffer holds, in a run with a tool call. Health
# says how many were lost, and the report says that its counts are lower bounds.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"

# shellcheck disable=SC2016 # for the measured shell
hammer='i=0; while [ $i -lt 20000 ]; do : <"$0"; i=$((i + 1)); done'
measure pressed --ring-size 4096 --policy "$policy" -- sh -c "$hammer; \"\$@\"" "$tmp/work/input.txt" \
	"$fixtures/mcp-policy-agent.sh" "$parts" "$policy" read_file "$input" >/dev/null
require kernel=partial_ringbuf_drops,policy=present,correlation=partial
# shellcheck disable=SC2016 # a variable of jq
check "the drops are counted and named" '.health.ringbuf_drops > 0 and (.health.ringbuf_drops as $n
	| .health.notes | any(startswith("s2_kernel_loss: ") and contains("dropped=\($n)")))'
check "the report says that events were lost" '.report.ambiguities | any(. == "kernel_events_lost")'
