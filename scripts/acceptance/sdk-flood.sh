#!/bin/sh
# An agent that floods its SDK log with one long line, many lines or many bytes: memory and
# archive stay bounded, the report says that the log was cut, and the agent is not blocked.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"

flooded() { # flooded NAME PROGRAM: an awk program that prints the log
	measure "$1" --agent-shim openai-agents -- sh -c "awk '$2' >>\"\$ASSAY_RUNNER_SDK_EVENT_LOG\"; exit 7" || [ $? = 7 ] ||
		fail "the command's exit status is lost"
	require cgroup=clean,policy=absent,correlation=partial
	check "$1: the report says that the log was flooded" '.report.ambiguities | any(. == "sdk_log_flooded")'
}
head='{\"schema\":\"assay.runner.sdk_event.v0\",\"run_id\":\"'"$run"'\",\"seq\":%d,\"event_type\":\"run_finished\",\"source\":\"'
flooded long_line "BEGIN { printf \"$head\", 0; for (i = 0; i < 70000; i++) printf \"x\"; print \"\\\"}\" }"
check "the line is not in the layer" '.health.sdk_layer == "absent"'
flooded many_lines "BEGIN { for (i = 0; i < 262145; i++) printf \"${head}x\\\"}\\n\", i }"
check "the lines within the limit were taken" '.report.ambiguities == ["sdk_log_flooded"] and (.health.notes
	| any(test("^s5_sdk_capture: sdk_events=[1-9][0-9]{5} sdk_tool_calls=0$")))'
flooded many_bytes "BEGIN { x = sprintf(\"%1000s\", \"x\"); for (i = 0; i < 40000; i++) printf \"$head%s\\\"}\\n\", i, x }"
