#!/bin/sh
# Scenario matrix: OpenAI Agents with the SDK's own MCP client (MCPServerStdio), through the shim's mcpTools:
# the calls join by the SDK's ids, also in parallel, with a prefix, and when they are denied.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/scenarios.sh
. scripts/lib/scenarios.sh

need_agents
for sdk in @openai/agents openai-agents-older; do
	agent native --sdk "$sdk" --native >/dev/null
	require cgroup=clean,policy=present,sdk=self_reported,correlation=clean
	unambiguous
	bound_to_its_read
	agent prefixed --sdk "$sdk" --native --prefix fs_ >/dev/null
	require cgroup=clean,policy=present,sdk=self_reported,correlation=clean
	noted "sdk_tool_name_prefixed:$id"
	agent parallel --sdk "$sdk" --native --calls 3 >/dev/null
	require cgroup=clean,policy=present,sdk=self_reported,correlation=clean
	check "three calls, each joined with its decision" '.report.bindings | map(.tool_call_id) == ["'"$id-1"'", "'"$id-2"'", "'"$id-3"'"]'
	# Without mcpTools no id is sent: the calls are found by their arguments, if these are unique. The SDK does not tell
	# the shim whether such a tool did its work.
	agent plain --sdk "$sdk" --native --plain >/dev/null
	require cgroup=clean,policy=present,sdk=self_reported,correlation=partial
	ambiguous "sdk_tool_call_not_completed:$id"
	check "the call was found by its arguments" '.report.bindings | length == 1 and .[0].join == "argument_digest" and .[0].sdk_tool_call_id == "'"$id"'"'
	agent same --sdk "$sdk" --native --plain --calls 2 >/dev/null
	check "two calls with the same arguments are not joined" '.report.bindings | length == 2 and all(.join == null)'
done
sed -i 's|under: .*}]|under: /nowhere}]|' "$policy" # from here what is read is denied
agent denied --native >/dev/null
require cgroup=clean,policy=present,sdk=self_reported,correlation=clean
noted "sdk_tool_call_failed:$id"
