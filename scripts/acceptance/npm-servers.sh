#!/bin/sh
# Ordinary calls of servers from npm read clean: one that keeps a file of its own, which no call names, and one that lists a
# directory, writes a new file and fails to read a missing one.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/scenarios.sh
. scripts/lib/scenarios.sh

need_agents
modules=$(realpath "$fixtures/openai-agents/node_modules/@modelcontextprotocol")
printf 'schema: runner.policy.v0\ndefault: allow\n' >"$policy"
entity='{"entities":[{"name":"a","entityType":"b","observations":["c"]}]}'
measure memory --policy "$policy" -- "$parts/mcp-client" "m1=create_entities=$entity" "m2=read_graph={}" -- \
	"$parts/runner-policy" --policy "$policy" -- env MEMORY_FILE_PATH="$tmp/work/memory.jsonl" node "$modules/server-memory/dist/index.js" >/dev/null 2>&1
require cgroup=clean,policy=present,correlation=clean
unambiguous
check "both calls are noted to name nothing" '.report.notes | contains(["tool_call_names_nothing:m1", "tool_call_names_nothing:m2"])'
check "the file is the effect of the call that wrote it" '.report.bindings[0].kernel_effects | any(test("memory.jsonl"))'

measure files --policy "$policy" -- "$parts/mcp-client" "f1=list_directory={\"path\":\"$tmp/work\"}" "f2=write_file={\"path\":\"$tmp/work/new.txt\",\"content\":\"x\"}" \
	"f3=read_text_file={\"path\":\"$tmp/work/none.txt\"}" "f4=list_allowed_directories={}" -- \
	"$parts/runner-policy" --policy "$policy" -- node "$modules/server-filesystem/dist/index.js" "$tmp/work" >/dev/null 2>&1
require cgroup=clean,policy=present,correlation=clean
unambiguous
