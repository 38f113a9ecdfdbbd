#!/bin/sh
# A denied call: a decision, no side effect, and none claimed. A denial is not an ambiguity.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"

measure denied --policy "$policy" -- "$fixtures/mcp-policy-agent.sh" "$parts" "$policy" write_file "$output" >"$tmp/said"
require cgroup=clean,policy=present,sdk=absent,correlation=clean
unambiguous
check "the decision is bound, with no effect" '.report.bindings | length == 1 and (.[0]
	| .tool_call_id == "'"$id"'" and .policy_decision == "deny" and .kernel_event_count == 0 and .kernel_effects == null)'
same "the surface has the decision" .surface.policy_decisions deny:write_file
check "nothing claims that the file was touched" '.surface.filesystem_paths | any(. == "'"$tmp/work/output.txt"'") | not'
[ ! -e "$tmp/work/output.txt" ] || fail "the file was written"
grep -q "^$id tool_error " "$tmp/said" || fail "the client was not told: $(cat "$tmp/said")"
