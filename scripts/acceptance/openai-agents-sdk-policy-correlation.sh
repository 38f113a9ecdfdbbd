#!/bin/sh
# A real @openai/agents agent where nothing can be observed (no root, no eBPF): its SDK and
# the policy proxy name the same call, and the record claims nothing of the kernel.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck disable=SC2034 # measure.sh
kernel=not_needed
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/scenarios.sh
. scripts/lib/scenarios.sh

need_agents
openai_agents_sdk_policy accepted
require kernel=absent,cgroup=partial,policy=present,sdk=self_reported,correlation=partial
ambiguous policy_events_without_kernel_events
check "both name one call, and nothing is claimed of the kernel" '.report.bindings | length == 1 and (.[0]
	| .tool_call_id == "'"$id"'" and .policy_decision == "allow" and .kernel_event_count == 0 and .kernel_effects == null)'
