# shellcheck shell=sh
# Sourced after calls.sh: the runs that one script accepts and another repeats. The first
# argument of each names the archive.
# shellcheck disable=SC2154 # calls.sh
# shellcheck source=scripts/lib/listener.sh
. scripts/lib/listener.sh

kernel_only() { # kernel_only NAME [FLAG…]
	[ -e "$tmp/kernel_only.address" ] || listen kernel_only
	measure "$@" -- "$fixtures/kernel-only-agent.sh" "$tmp/work" "$parts/listener" "$(cat "$tmp/kernel_only.address")"
}
kernel_policy() { # kernel_policy NAME [FLAG…]
	measure "$@" --policy "$policy" -- "$fixtures/mcp-policy-agent.sh" "$parts" "$policy" read_file "$input"
}
sdk_contract() {
	measure "$1" --agent-shim openai-agents -- "$fixtures/sdk-event-wrapper.sh" tc_sdk_001 read_file cat "$tmp/work/input.txt"
}
sdk_policy() { # sdk_policy NAME [ID that the SDK reports]
	measure "$1" --policy "$policy" --agent-shim openai-agents -- "$fixtures/sdk-event-wrapper.sh" "${2:-$id}" read_file \
		"$fixtures/mcp-policy-agent.sh" "$parts" "$policy" read_file "$input"
}
sdk_policy_mismatch() { sdk_policy "$1" tc_runner_sdk_only_001; }

# Node reads the certificates that this names in a thread of its own while it starts. The first request
# of an agent comes meanwhile: sometimes that read would be of the start, sometimes of the request.
unset NODE_EXTRA_CA_CERTS

need_agents() {
	if ! [ -d "$fixtures/openai-agents/node_modules" ] || ! command -v node >/dev/null; then
		skip "a real agent needs Node and: npm ci --prefix testdata/fixtures/openai-agents"
	fi
}
agent() { # agent NAME [FLAG of agent.js…]: a real @openai/agents agent, after need_agents
	as=$1
	shift
	# shellcheck disable=SC2086 # a list
	measure "$as" ${agent_flags:-} --policy "$policy" --agent-shim openai-agents -- node "$fixtures/openai-agents/agent.js" \
		--proxy "$parts/runner-policy" --policy "$policy" "$@" "$tmp/work" "$tmp/work/input.txt" 2>"$tmp/stderr" || {
		code=$?
		cat "$tmp/stderr" >&2
		return $code
	}
}
openai_agents_kernel_policy() { agent "$1"; }
openai_agents_sdk_policy() { agent_flags=--no-kernel agent "$1"; }
openai_agents_sdk_policy_mismatch() { agent "$1" --sdk-id tc_runner_sdk_only_001 --mcp-id "$id"; }

bound_to_its_read() { # the one binding says what the policy and the kernel saw of the call, and no more
	check "the call is bound to the one read that it requested" '.report.bindings | length == 1 and (.[0]
		| .tool_call_id == "'"$id"'" and .policy_decision == "allow" and .kernel_event_count == 1
		and .kernel_scope == "tool_server" and .kernel_effects == ["read '"$tmp/work/input.txt"'"]
		and .window == {start: "tool_call_started:'"$id"'", end: "tool_call_finished:'"$id"'"})'
}
