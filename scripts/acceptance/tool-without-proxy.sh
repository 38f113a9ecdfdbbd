#!/bin/sh
# An agent that makes one call through the proxy and then runs a tool server without it.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"

request='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_file","arguments":'$input'}}'
# shellcheck disable=SC2016 # for the measured shell
measure without --policy "$policy" -- sh -c 'server=$0 request=$1 && shift && "$@" && echo "$request" | "$server"' \
	"$parts/mcp-server" "$request" "$fixtures/mcp-policy-agent.sh" "$parts" "$policy" read_file "$input"
require cgroup=clean,policy=present,correlation=partial
ambiguous "exec_without_tool_call:$(readlink -f "$parts/mcp-server")"
check "the call through the proxy is bound" '.report.bindings | length == 1 and .[0].kernel_event_count == 1'
