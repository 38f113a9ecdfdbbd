#!/bin/sh
# A real agent that is ended in the middle of its tool, and leaves with status 0: what it had
# reported until then is there, and that nothing came after is named. Nobody survives.
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
check "the SDK's word ends in the middle" '.report.ambiguities | contains(["sdk_run_not_finished", "sdk_tool_call_not_completed:'"$id"'"])'
check "what it said before is there" '.health.notes | any(. == "s5_sdk_capture: sdk_events=1 sdk_tool_calls=1")'
check "the call itself was answered" '.report.bindings | length == 1 and .[0].kernel_effects == ["read '"$tmp/work/input.txt"'"]'
check "no process had to be killed" '.health.notes | any(startswith("s2_survivors_killed")) | not'
