#!/bin/sh
# A tool server that continues to work after it answered its call, and one that does more
# during the call than the call requested.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"

extra=$tmp/work/extra.txt
measure after --policy "$policy" -- "$fixtures/mcp-policy-agent.sh" "$parts" "$policy" read_file "$input" -after "$extra"
require cgroup=clean,policy=present,correlation=partial
ambiguous "kernel_events_outside_tool_windows:$id"
check "the binding has only what was done in the call" '.report.bindings[0] | .kernel_event_count == 1 and .kernel_effects == ["read '"$tmp/work/input.txt"'"]'
check "what came later is counted separately" '.health.notes | any(test("^s6_windows: call=1 setup=[0-9]+ idle=1 "))'

measure inside --policy "$policy" -- "$fixtures/mcp-policy-agent.sh" "$parts" "$policy" read_file "$input" -touch "$extra"
require cgroup=clean,policy=present,correlation=partial
ambiguous "tool_call_effects_outside_request:$id"
check "the binding says what else it did" '.report.bindings[0].kernel_effects == ["read '"$tmp/work/input.txt"'", "write '"$extra"'"]'

measure exec --policy "$policy" -- "$fixtures/mcp-policy-agent.sh" "$parts" "$policy" read_file "$input" -run "$(command -v env)"
require cgroup=clean,policy=present,correlation=partial
ambiguous "tool_call_effects_outside_request:$id"
check "the program that it ran is among them" '.report.bindings[0].kernel_effects | any(. == "exec '"$(readlink -f "$(command -v env)")"'")'

measure stays --policy "$policy" -- "$parts/mcp-client" "$id=read_file=$input" -- \
	"$parts/runner-policy" --policy "$policy" --grace 300ms -- "$parts/mcp-server" -ignore-eof || [ $? = 143 ]
require cgroup=clean,policy=present,correlation=clean
unambiguous # the proxy ended the server
