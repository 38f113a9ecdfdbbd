#!/bin/sh
# Processes that runner-proc runs: each has its decision, its window and its process tree, also at the same time as others. A
# denied one touches nothing, and what somebody else does of it is found.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/measure.sh
. "$(dirname "$0")/../lib/measure.sh"
# shellcheck source=scripts/lib/three-runs.sh
. scripts/lib/three-runs.sh

frame() { # frame ARGV…: base64 of a request
	for a; do printf '%s\n' "$a"; done | jq -Rnc '{argv: [inputs], caps: {max_stdout_bytes: 1000, max_stderr_bytes: 1000, timeout_ms: 20000}}' | "$bin/runner-proc" encode | base64 | tr -d '\n'
}
request() { # request ID ARGV…: a line for serve
	number=$1
	shift
	printf '{"id":%s,"op":"run","frame":"%s"}\n' "$number" "$(frame "$@")"
}
cp "$fixtures/process-policy.json" "$tmp/process.json"
printf 'schema: runner.policy.v0\nnetwork: {default: allow, rules: [{id: no, deny: [203.0.113.0/24]}]}\n' >"$tmp/network.yaml"
frame /bin/cat "$tmp/work/input.txt" | base64 -d >"$tmp/cat.bin"
frame /bin/head -c1 "$tmp/work/input.txt" | base64 -d >"$tmp/head.bin"
# shellcheck disable=SC2016 # for the measured shell
two='"$0/runner-proc" run --policy "$1/process.json" <"$1/cat.bin" && "$0/runner-proc" run --policy "$1/process.json" <"$1/head.bin"'

# shellcheck disable=SC2317 # called by name
once() { measure "$1" --policy-log "$tmp/policy.log" -- sh -c "$two" "$bin" "$tmp" >"$tmp/results"; }
once once
require cgroup=clean,policy=present,correlation=clean
unambiguous
check "the allowed one is bound to what its program did" '.report.bindings[0] | .tool_call_id == "proc:0:0" and .policy_decision == "allow"
	and .window.start == "tool_call_started:proc:0:0" and (.kernel_effects | any(endswith("/bin/cat")) and any(. == "read '"$tmp/work/input.txt"'"))'
check "the denied one did nothing" '.report.bindings[1] | .tool_call_id == "proc:1:0" and .policy_decision == "deny" and .kernel_event_count == 0 and .kernel_effects == null'
three_runs once cgroup=clean

n=0
while [ $((n += 1)) -le 8 ]; do
	echo "$n" >"$tmp/work/$n.txt"
	request "$n" /bin/cat "$tmp/work/$n.txt" >>"$tmp/requests"
done
request 9 /bin/head "$tmp/work/9.txt" >>"$tmp/requests"
measure serve --policy "$tmp/network.yaml" --policy-log "$tmp/policy.log" -- "$bin/runner-proc" serve --policy "$tmp/process.json" <"$tmp/requests" >"$tmp/answers"
[ "$(jq -sc 'map(.id) | sort' "$tmp/answers")" = '[1,2,3,4,5,6,7,8,9]' ] || fail "answers: $(cat "$tmp/answers")"
require cgroup=clean,policy=present,correlation=clean
unambiguous
check "eight windows, each with the read of its own file" '[.report.bindings[] | select(.policy_decision == "allow")] | length == 8
	and all(.kernel_scope == "tool_server" and ([.kernel_effects[] | select(startswith("read '"$tmp"'"))] | length == 1))
	and (map(.kernel_effects[] | select(startswith("read '"$tmp"'"))) | unique | length == 8)'

# shellcheck disable=SC2016 # for the measured shell
measure otherwise --policy-log "$tmp/policy.log" -- sh -c '"$0/runner-proc" run --policy "$1/process.json" <"$1/head.bin" && head -c1 "$1/work/input.txt"' "$bin" "$tmp" >/dev/null
check "what was denied and done otherwise is found" '.report.ambiguities | any(. == "denied_call_with_kernel_effects:proc:0:0")'
