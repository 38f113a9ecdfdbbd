#!/bin/sh
# Agents whose SDK log has no proper end: a cut last line, an agent that was killed, and a
# descendant that keeps the log open or writes to it later.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/sdk-log.sh
. scripts/lib/sdk-log.sh

# shellcheck disable=SC2016 # for the measured shells
cut='printf "%s\n%s" "$1" "$2" >>"$ASSAY_RUNNER_SDK_EVENT_LOG"'
measure cut --agent-shim openai-agents -- sh -c "$cut" sh "$(event 0 run_finished)" '{"schema":"assay.runner.sdk_ev'
require cgroup=clean,policy=absent,sdk=self_reported,correlation=partial
check "the report names the cut line" '.report.ambiguities | any(. == "sdk_log_truncated")'
check "the whole line before it was taken" '.health.notes | any(. == "s5_sdk_capture: sdk_events=1 sdk_tool_calls=0")'

# shellcheck disable=SC2016
measure killed --agent-shim openai-agents -- sh -c 'echo "$1" >>"$ASSAY_RUNNER_SDK_EVENT_LOG"; kill -KILL $$' sh \
	"$(event 0 tool_call_started tc_1 read_file)" && exit 1
require cgroup=clean,policy=absent,sdk=self_reported,correlation=partial
ambiguous sdk_run_not_finished sdk_tool_call_not_completed:tc_1

# shellcheck disable=SC2016
measure held --agent-shim openai-agents --grace 1s -- sh -c 'exec 3>>"$ASSAY_RUNNER_SDK_EVENT_LOG"; echo "$1" >&3; sleep 0.3 &' sh \
	"$(event 0 run_finished)"
require cgroup=clean,policy=absent,sdk=self_reported,correlation=partial
ambiguous sdk_log_writer_open_at_end

# shellcheck disable=SC2016
measure after --agent-shim openai-agents --grace 5s -- sh -c 'echo "$1" >>"$ASSAY_RUNNER_SDK_EVENT_LOG"; { sleep 1; echo "$2" >>"$ASSAY_RUNNER_SDK_EVENT_LOG"; } >/dev/null 2>&1 &' sh \
	"$(event 0 run_finished)" "$(event 1 run_failed)"
require cgroup=clean,policy=absent,sdk=self_reported,correlation=partial
ambiguous sdk_log_written_after_end
