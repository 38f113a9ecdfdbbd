#!/bin/sh
# Scenario matrix: an MCP tool that the policy denies. Three denied calls: another tool, a path
# outside of the allowed folder, a path with .. in it. No allowed side effect is claimed.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"

refused() { # refused NAME TOOL ARGUMENTS
	measure "$1" --policy "$policy" -- "$fixtures/mcp-policy-agent.sh" "$parts" "$policy" "$2" "$3" >/dev/null
	require cgroup=clean,policy=present,sdk=absent,correlation=clean
	unambiguous
	check "$1 is denied, and its binding claims nothing" '.surface.policy_decisions == ["deny:'"$2"'"] and (.report.bindings | length == 1
		and (.[0] | .policy_decision == "deny" and .kernel_event_count == 0 and .kernel_effects == null))'
}
refused another_tool write_file "$output"
refused outside read_file '{"path":"/etc/hostname"}'
refused dots read_file '{"path":"'"$tmp/work/../policy.yaml"'"}'

# A plain read of some names is noise and has no line, so the record cannot say whether it happened.
measure noise --policy "$policy" -- "$fixtures/mcp-policy-agent.sh" "$parts" "$policy" read_file '{"path":"/proc/version"}' >/dev/null
require cgroup=clean,policy=present,correlation=partial
ambiguous "tool_call_targets_unknown:$id"
