#!/bin/sh
# An agent that forges tool call ids: it uses the id of one call for another, in the call and in
# its SDK events.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"

measure twice --policy "$policy" --agent-shim openai-agents -- "$fixtures/sdk-event-wrapper.sh" "$id" read_file \
	"$parts/mcp-client" "$id=read_file=$input" "$id=write_file=$output" -- \
	"$parts/runner-policy" --policy "$policy" -- "$parts/mcp-server"
require cgroup=clean,policy=present,sdk=self_reported,correlation=partial
ambiguous "tool_call_id_repeated:$id"
check "neither call has its own window" '.report.bindings | length == 2
	and all(.tool_call_id == "'"$id"'" and .window == {start: "run_started", end: "run_finished"})'

# The client sends no id: the proxy declares one, which the SDK cannot have known.
measure none --policy "$policy" --agent-shim openai-agents -- "$fixtures/sdk-event-wrapper.sh" "$id" read_file \
	"$parts/mcp-client" -no-id "$id=read_file=$input" -- "$parts/runner-policy" --policy "$policy" -- "$parts/mcp-server"
require cgroup=clean,policy=present,sdk=self_reported,correlation=partial
ambiguous policy_call_not_in_sdk:mcp:mcp-server:number:2 "sdk_tool_call_without_policy_binding:$id"
