#!/bin/sh
# An agent that replaces its SDK log by another file. The runner keeps what it read before and
# does not read the file, and the report says that the log was replaced.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/sdk-log.sh
. scripts/lib/sdk-log.sh

# shellcheck disable=SC2016 # for the measured shell
measure replaced --agent-shim openai-agents -- sh -c 'log=$ASSAY_RUNNER_SDK_EVENT_LOG
echo "$1" >>"$log" && rm "$log" && echo "$2" >"$log"' sh "$(event 0 tool_call_started tc_1 read_file)" "$(event 1 tool_call_completed tc_1 read_file)"
require cgroup=clean,policy=absent,sdk=self_reported,correlation=partial
ambiguous sdk_log_replaced sdk_run_not_finished sdk_tool_call_not_completed:tc_1
check "one event was read" '.health.notes | any(. == "s5_sdk_capture: sdk_events=1 sdk_tool_calls=1")'
