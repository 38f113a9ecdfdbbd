#!/bin/sh
# An agent that writes false lines to its SDK log. A line that is not an event ends the layer
# there. An event about something that did not happen changes no claim, and the report names
# it. The run continues.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/sdk-log.sh
. scripts/lib/sdk-log.sh

one=$(event 0 tool_call_started tc_1 read_file)
refused() { # refused WHY LINE: as the second line
	log_lines "$1" "$one" "$2" "$(event 2 run_finished)"
	require cgroup=clean,policy=absent,sdk=self_reported,correlation=partial
	ambiguous "sdk_log_invalid:2:$1" sdk_run_not_finished sdk_tool_call_not_completed:tc_1
	check "the layer ends there" '.health.notes | any(. == "s5_sdk_capture: sdk_events=1 sdk_tool_calls=1")'
}
refused bad_json 'this is not JSON'
refused bad_json '{"schema":"assay.runner.sdk_event.v0","run_id":"'"$run"'","seq":1,"seq":1,"event_type":"run_finished","source":"x"}'
refused bad_schema '{"schema":"assay.runner.sdk_event.v9","run_id":"'"$run"'","seq":1,"event_type":"run_finished","source":"x"}'
refused bad_run_id '{"schema":"assay.runner.sdk_event.v0","run_id":"another","seq":1,"event_type":"run_finished","source":"x"}'
refused bad_seq "$(event 7 run_finished)"
refused bad_event_type "$(event 1 tool_call_approved tc_1 read_file)"
refused bad_field "$(event 1 tool_call_completed)"

log_lines garbage "not an event"
require cgroup=clean,policy=absent,correlation=partial
ambiguous sdk_log_empty sdk_log_invalid:1:bad_json

# It reports that a denied call was completed.
measure lies --policy "$policy" --agent-shim openai-agents -- "$fixtures/sdk-event-wrapper.sh" "$id" write_file \
	"$fixtures/mcp-policy-agent.sh" "$parts" "$policy" write_file "$output"
require cgroup=clean,policy=present,sdk=self_reported,correlation=partial
ambiguous "sdk_completed_denied_call:$id"
check "the decision stays a denial" '.surface.policy_decisions == ["deny:write_file"] and .report.bindings[0].kernel_event_count == 0'
