#!/bin/sh
# Scenario matrix: a tool call of OpenAI Agents, with npm's current SDK and an older one.
# The binding of tool, policy and kernel is the same in both; a denied and a thrown call.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/calls.sh
. "$(dirname "$0")/calls.sh"
# shellcheck source=scripts/scenarios.sh
. scripts/scenarios.sh

for sdk in @openai/agents openai-agents-older; do
	openai_agents agent --sdk "$sdk" >/dev/null
	demand cgroup=clean,policy=present,sdk=self_reported,correlation=clean
	unambiguous
	bound_to_its_read
	openai_agents throws --sdk "$sdk" --throw >/dev/null
	demand cgroup=clean,policy=present,sdk=self_reported,correlation=partial
	ambiguous "sdk_tool_call_not_completed:$id"
	openai_agents parallel --sdk "$sdk" --calls 3 >/dev/null
	holds "three calls, each joined with its decision" '.report.bindings | map(.tool_call_id) == ["'"$id-1"'", "'"$id-2"'", "'"$id-3"'"]'
	holds "no SDK call is without its decision" '.report.ambiguities | any(startswith("sdk_tool_call_without") or startswith("policy_call_not")) | not'
done

sed -i 's/read_\*/nothing/' "$policy" # from here on reading is denied
openai_agents denied >/dev/null
demand cgroup=clean,policy=present,sdk=self_reported,correlation=partial
ambiguous "sdk_tool_call_not_completed:$id"
openai_agents swallowed --swallow >/dev/null
ambiguous "sdk_completed_denied_call:$id"
