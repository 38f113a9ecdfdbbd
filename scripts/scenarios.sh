# shellcheck shell=sh
# Sourced after calls.sh: the runs that a script accepts and another repeats. Each
# takes the name of the archive to write.
# shellcheck disable=SC2154 # calls.sh
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
openai_agents() { # openai_agents NAME [FLAG of agent.js…]
	as=$1
	shift
	need_agents
	measure "$as" --policy "$policy" --agent-shim openai-agents -- node "$fixtures/openai-agents/agent.js" \
		--proxy "$parts/runner-policy" --policy "$policy" "$@" "$tmp/work" "$tmp/work/input.txt" 2>"$tmp/stderr" || {
		code=$?
		cat "$tmp/stderr" >&2
		return $code
	}
}
openai_agents_mismatch() { openai_agents "$1" --sdk-id tc_runner_sdk_only_001 --mcp-id "$id"; }
need_agents() {
	if ! [ -d "$fixtures/openai-agents/node_modules" ] || ! command -v node >/dev/null; then
		untested "a real agent needs Node and: npm ci --prefix testdata/fixtures/openai-agents"
	fi
}

bound_to_its_read() { # the one binding says what the policy and the kernel saw of the call, and no more
	holds "the call is bound to the one read that it asked for" '.report.bindings | length == 1 and (.[0]
		| .tool_call_id == "'"$id"'" and .policy_decision == "allow" and .kernel_event_count == 1
		and .kernel_scope == "tool_server" and .kernel_effects == ["read '"$tmp/work/input.txt"'"]
		and .window == {start: "tool_call_started:'"$id"'", end: "tool_call_finished:'"$id"'"})'
}

three_runs() { # three_runs SCENARIO: what is no count of the kernel's may not differ
	for n in 1 2 3; do
		"$1" "run$n" >/dev/null
		"$bin"/runner-verify --require kernel=complete,drops=0,cgroup=clean "$archive" >/dev/null || exit 1
		mkdir "$tmp/$n" && tar -xzf "$archive" -C "$tmp/$n"
	done
	for m in observation-health.json capability-surface.json correlation-report.json layers/policy.ndjson layers/sdk.ndjson events.ndjson; do
		for n in 2 3; do
			cmp "$tmp/1/$m" "$tmp/$n/$m" && continue
			diff "$tmp/1/$m" "$tmp/$n/$m" | head -c 4000
			for k in 1 "$n"; do # and what the kernel saw in one of them alone
				sed 's/.*"event_type"//; s/"return_value":[0-9]*//' "$tmp/$k/layers/kernel.ndjson" | sort >"$tmp/$k/seen"
			done
			diff "$tmp/1/seen" "$tmp/$n/seen"
			echo "FAIL  $m of run $n differs from run 1" && exit 1
		done
		echo "ok    $m: $(sha256sum <"$tmp/1/$m" | cut -c1-64)"
	done
}
