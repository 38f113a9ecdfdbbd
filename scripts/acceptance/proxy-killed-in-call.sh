#!/bin/sh
# The policy proxy is killed during a call. The decision was written before, and the report
# names the call and the session as not finished.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"

measure killed --policy "$policy" -- "$parts/mcp-client" -kill 1500ms "$id=barrier={\"n\":2,\"path\":\"$tmp/work/input.txt\"}" -- \
	"$parts/runner-policy" --policy "$policy" -- "$parts/mcp-server"
require cgroup=clean,policy=present,correlation=partial
ambiguous "policy_session_not_finished:mcp-server" "tool_call_not_finished:$id"
check "the decision is there, without its own window" '.report.bindings | length == 1 and (.[0]
	| .policy_decision == "allow" and .window == {start: "run_started", end: "run_finished"})'
