#!/bin/sh
# A call in two requests with two JSON-RPC ids (multi round trip in the modern protocol): two
# decisions, which are attempts of one call, each with its window. Nothing is ambiguous.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"

measure twice --policy "$policy" -- "$fixtures/mcp-policy-agent.sh" "$parts" "$policy" read_file "$input" -twice
require cgroup=clean,policy=present,sdk=absent,correlation=clean
unambiguous
check "both attempts are bound, each to its own read" '.report.bindings | length == 2
	and all(.tool_call_id == "'"$id"'" and .kernel_event_count == 1 and .kernel_effects == ["read '"$tmp/work/input.txt"'"])'
mkdir "$tmp/x" && tar -xzf "$archive" -C "$tmp/x"
[ "$(grep -c '"outcome":"input_required"\|"outcome":"completed".*"attempt":2' "$tmp/x/layers/policy.ndjson")" = 2 ] ||
	fail "the layer: $(cat "$tmp/x/layers/policy.ndjson")"
