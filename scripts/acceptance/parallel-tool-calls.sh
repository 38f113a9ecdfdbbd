#!/bin/sh
# Twenty concurrent calls on one file, which the server answers only when it has all of them: nothing
# tells them apart, and a note names each. On files of their own, and in sequence, each has its own window.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"

set --
codes=
for n in 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20; do
	set -- "$@" "tc_$n=barrier={\"n\":20,\"path\":\"$tmp/work/input.txt\"}"
	codes="$codes tool_calls_overlap:tc_$n"
done
measure parallel --policy "$policy" -- "$parts/mcp-client" -at-once "$@" -- "$parts/runner-policy" --policy "$policy" -- "$parts/mcp-server" >"$tmp/said"
[ "$(grep -c ' completed known input$' "$tmp/said")" = 20 ] || { cat "$tmp/said" && exit 1; }
require cgroup=clean,policy=present,correlation=clean
# shellcheck disable=SC2086 # a list
noted $codes
check "twenty bindings in the order of their ids, none with its own window" '.report.bindings
	| map(.tool_call_id) == ([range(1; 21)] | map("tc_\(. / 10 | floor)\(. % 10)"))
	and all(.window == {start: "run_started", end: "run_finished"} and .kernel_scope == "tool_server")'

set --
for n in 01 02 03 04 05 06 07 08 09 10; do
	echo "$n" >"$tmp/work/$n.txt"
	set -- "$@" "tc_$n=barrier={\"n\":10,\"path\":\"$tmp/work/$n.txt\"}"
done
measure apart --policy "$policy" -- "$parts/mcp-client" -at-once "$@" -- "$parts/runner-policy" --policy "$policy" -- "$parts/mcp-server" >/dev/null
require cgroup=clean,policy=present,correlation=clean
noted
# shellcheck disable=SC2016 # of jq
check "ten windows, each with the read of its own file" '.report.bindings | length == 10
	and all(.kernel_event_count == 1 and (.tool_call_id[3:] as $n | .kernel_effects[0] | endswith("/\($n).txt")))'

set --
for n in 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20; do
	set -- "$@" "tc_$n=read_file=$input"
done
measure serial --policy "$policy" -- "$parts/mcp-client" "$@" -- "$parts/runner-policy" --policy "$policy" -- "$parts/mcp-server" >/dev/null
require cgroup=clean,policy=present,correlation=clean
unambiguous
check "twenty windows with one read each" '.report.bindings | length == 20
	and all(.kernel_event_count == 1 and .window.start == "tool_call_started:" + .tool_call_id)'

# Two concurrent servers, each with its own proxy: their process trees separate the calls.
# shellcheck disable=SC2016 # for the measured shell
measure two --policy "$policy" -- sh -c '"$0/mcp-client" "tc_a=$2" -- "$0/runner-policy" --policy "$1" --name a -- "$0/mcp-server" &
"$0/mcp-client" "tc_b=$2" -- "$0/runner-policy" --policy "$1" --name b -- "$0/mcp-server" & wait' "$parts" "$policy" "read_file=$input" >/dev/null
require cgroup=clean,policy=present,correlation=clean
unambiguous
check "each call has one read, in its own window" '.report.bindings | map(.tool_call_id) == ["tc_a", "tc_b"]
	and all(.kernel_event_count == 1 and .window.start == "tool_call_started:" + .tool_call_id)'
