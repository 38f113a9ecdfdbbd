#!/bin/sh
# A real agent that is ended while its tool works. What it reported before is in the record, the
# report names what is missing, and no process survives.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/scenarios.sh
. scripts/lib/scenarios.sh

need_agents
measure killed --timeout 8s --policy "$policy" --agent-shim openai-agents -- node "$fixtures/openai-agents/agent.js" --hang \
	--proxy "$parts/runner-policy" --policy "$policy" "$tmp/work" "$tmp/work/input.txt" || [ $? = 143 ]
require cgroup=clean,policy=present,sdk=self_reported,correlation=partial
check "the SDK's events end in the middle of the call" '.report.ambiguities | contains(["sdk_run_not_finished", "sdk_tool_call_not_completed:'"$id"'"])'
check "its earlier event is there" '.health.notes | any(. == "s5_sdk_capture: sdk_events=1 sdk_tool_calls=1")'
check "the MCP call was answered" '.report.bindings | length == 1 and .[0].kernel_effects == ["read '"$tmp/work/input.txt"'"]'
check "no process had to be killed" '.health.notes | any(startswith("s2_survivors_killed")) | not'
