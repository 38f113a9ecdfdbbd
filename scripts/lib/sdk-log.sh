# shellcheck shell=sh
# Sourced after calls.sh: an agent that writes its SDK log by hand.
# shellcheck disable=SC2154 # calls.sh
event() { # event SEQ TYPE [ID TOOL]: a line of an SDK log
	printf '{"schema":"assay.runner.sdk_event.v0","run_id":"%s","seq":%d,"event_type":"%s","source":"script"' "$run" "$1" "$2"
	[ $# -lt 4 ] || printf ',"tool_call_id":"%s","tool":"%s"' "$3" "$4"
	echo '}'
}
log_lines() { # log_lines NAME LINE…: an agent that writes these lines to its SDK log
	as=$1
	shift
	# shellcheck disable=SC2016 # for the measured shell
	measure "$as" --agent-shim openai-agents -- sh -c 'printf "%s\n" "$@" >>"$ASSAY_RUNNER_SDK_EVENT_LOG"' sh "$@"
}
