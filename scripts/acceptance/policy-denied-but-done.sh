#!/bin/sh
# The policy denies a call, and the agent does itself what it asked for: that surfaces.
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

# A refusal by the system is no effect: the agent tried, and the file is not there.
# shellcheck disable=SC2016
measure failed --policy "$policy" -- sh -c '"$@" && ! echo x >"$0"' "$tmp/work/nowhere/output.txt" \
	"$fixtures/mcp-policy-agent.sh" "$parts" "$policy" write_file '{"path":"'"$tmp/work/nowhere/output.txt"'","content":"x"}'
require cgroup=clean,policy=present,correlation=clean
unambiguous
