#!/bin/sh
# Scenario matrix: an MCP tool that the policy allows. The policy layer and the kernel
# layer agree about the call, also when a child of the server does the work.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/scenarios.sh
. scripts/lib/scenarios.sh

kernel_policy allowed
require cgroup=clean,policy=present,sdk=absent,correlation=clean
unambiguous
bound_to_its_read

measure by-child --policy "$policy" -- "$fixtures/mcp-policy-agent.sh" "$parts" "$policy" read_file "$input" -child
require cgroup=clean,policy=present,sdk=absent,correlation=partial
ambiguous "tool_call_effects_outside_request:$id" # the call did not request the child's program
check "what the child did is attributed to the call" '.report.bindings[0] | .kernel_scope == "tool_server" and (.kernel_effects | any(. == "read '"$tmp/work/input.txt"'"))'
