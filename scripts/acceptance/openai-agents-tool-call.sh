#!/bin/sh
# Scenario matrix: a tool call of OpenAI Agents, with npm's current SDK and an older one.
# The binding of tool, policy and kernel is the same with both. Also a denied call and a tool
# that throws.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/scenarios.sh
. scripts/lib/scenarios.sh

need_agents
for sdk in @openai/agents openai-agents-older; do
	agent agent --sdk "$sdk" >/dev/null
	require cgroup=clean,policy=present,sdk=self_reported,correlation=clean
	unambiguous
	bound_to_its_read
	agent throws --sdk "$sdk" --throw >/dev/null
	require cgroup=clean,policy=present,sdk=self_reported,correlation=partial
	ambiguous "sdk_tool_call_not_completed:$id"
	agent parallel --sdk "$sdk" --calls 3 >/dev/null
	check "three calls, each joined with its decision" '.report.bindings | map(.tool_call_id) == ["'"$id-1"'", "'"$id-2"'", "'"$id-3"'"]'
	check "no SDK call is without its decision" '.report.ambiguities | any(startswith("sdk_tool_call_without") or startswith("policy_call_not")) | not'
done

sed -i 's/read_\*/nothing/' "$policy" # from here reading is denied
agent denied >/dev/null
require cgroup=clean,policy=present,sdk=self_reported,correlation=clean
noted "sdk_tool_call_failed:$id"
agent swallowed --swallow >/dev/null
ambiguous "sdk_completed_denied_call:$id"
