#!/bin/sh
# The policy denies a call, and the agent then does the same itself: the report names it.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"

# shellcheck disable=SC2016 # for the measured shell
measure did --policy "$policy" -- sh -c '"$@" && echo x >"$0"' "$tmp/work/output.txt" \
	"$fixtures/mcp-policy-agent.sh" "$parts" "$policy" write_file "$output"
require cgroup=clean,policy=present,correlation=partial
ambiguous "denied_call_with_kernel_effects:$id"
check "the binding says what was done" '.report.bindings | length == 1 and (.[0]
	| .policy_decision == "deny" and .kernel_event_count == 0 and .kernel_effects == ["write '"$tmp/work/output.txt"'"])'

# A failed attempt is not an effect: the agent tried, and the file does not exist.
# shellcheck disable=SC2016
measure failed --policy "$policy" -- sh -c '"$@" && ! echo x >"$0"' "$tmp/work/nowhere/output.txt" \
	"$fixtures/mcp-policy-agent.sh" "$parts" "$policy" write_file '{"path":"'"$tmp/work/nowhere/output.txt"'","content":"x"}'
require cgroup=clean,policy=present,correlation=clean
unambiguous
