# shellcheck shell=sh
# Sourced by record.sh: runs with tool calls through the policy proxy, with agents that evade it
# or lie about it, and with network and file rules. Their folders also hold the collected logs.
# shellcheck disable=SC2154,SC2089,SC2090 # record.sh; quotes in a JSON document are meant
policy=$work/policy.yaml id=tc_runner_policy_001 file='{"path":"'$work/work/input.txt'"}' out='{"path":"'$work/work/output.txt'","content":"x"}'
cat >"$policy" <<EOT
schema: runner.policy.v0
default: deny
rules:
  - {id: read-work, allow: [read_*, barrier], args: [{at: \$.path, under: $work/work}]}
EOT
printf '%s\n' "schema: runner.policy.v0" "network: {default: allow, rules: [{id: no-documentation, deny: [203.0.113.0/24]}]}" >"$work/network.yaml"
{ cat "$policy" && echo "files: {rules: [{id: no-secret, deny: $work/work/input.txt}]}"; } >"$work/files.yaml"
cp testdata/fixtures/mcp-policy-agent.sh testdata/fixtures/sdk-event-wrapper.sh testdata/fixtures/intents.sh "$work/tools/"
mkdir -p "$work/home/.ssh" && echo "no key" >"$work/home/.ssh/id_ed25519"
{ cat "$work/network.yaml" && echo "files: {rules: [{id: no-keys, deny: $work/home/.ssh}]}"; } >"$work/install.yaml"
cp testdata/fixtures/process-policy.json "$work/process.json"
cp testdata/fixtures/install-hook.sh "$work/tools/install.sh"
agent="$work/tools/mcp-policy-agent.sh $work/tools $policy" sdk="--agent-shim openai-agents" wrapper=$work/tools/sdk-event-wrapper.sh
proxy="$work/tools/runner-policy --policy $policy -- $work/tools/mcp-server"
# shellcheck disable=SC2016,SC2086 # for the measured shell; lists
{
	record tool-allowed --policy "$policy" $sdk -- "$wrapper" $id read_file $agent read_file "$file"
	ARGUMENTS=$file && export ARGUMENTS # an SDK whose id the proxy does not get
	record tool-joined --policy "$policy" $sdk -- "$wrapper" call_1 read_file "$work/tools/mcp-client" -no-id "1=read_file=$file" -- $proxy
	unset ARGUMENTS
	record tool-times --times --policy "$policy" $sdk -- "$wrapper" $id read_file $agent read_file "$file"
	record tool-denied --policy "$policy" -- $agent write_file "$out"
	record tool-denied-but-done --policy "$policy" -- sh -c '"$@" && echo x >"$0"' "$work/work/output.txt" $agent write_file "$out"
	record tool-overlap --policy "$policy" -- "$work/tools/mcp-client" -at-once "a=barrier={\"n\":2,\"path\":\"$work/work/input.txt\"}" \
		"b=barrier={\"n\":2,\"path\":\"$work/work/input.txt\"}" -- $proxy
	record tool-outlives --policy "$policy" -- $agent read_file "$file" -after "$work/work/late.txt"
	record tool-bypass --policy "$policy" -- sh -c 'server=$0 request=$1 && shift && "$@" && echo "$request" | "$server"' \
		"$work/tools/mcp-server" '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_file","arguments":'"$file"'}}' $agent read_file "$file"
	record tool-proxy-killed --policy "$policy" -- "$work/tools/mcp-client" -kill 1500ms "$id=barrier={\"n\":2,\"path\":\"$work/work/input.txt\"}" -- $proxy
	record sdk-lies --policy "$policy" $sdk -- "$wrapper" $id write_file $agent write_file "$out"
	record sdk-forged-id --policy "$policy" $sdk -- "$wrapper" tc_forged read_file $agent read_file "$file"
	record sdk-flood $sdk -- sh -c "awk 'BEGIN { while (n++ < 70000) printf \"x\"; print \"\" }' >>\"\$ASSAY_RUNNER_SDK_EVENT_LOG\""
	record network-blocked --policy "$work/network.yaml" -- sh -c '"$0" dial "$1" && ! "$0" dial 203.0.113.7:443' "$work/tools/listener" "$(cat "$work/address")"
	record install-hook --policy "$work/install.yaml" -- "$work/tools/install.sh" "$work/work" "$work/home" "$work/tools/listener"
	record file-blocked --policy "$work/files.yaml" -- "$work/tools/mcp-policy-agent.sh" "$work/tools" "$work/files.yaml" read_file "$file"
	printf '{"argv":["/bin/cat","%s"],"caps":{"max_stdout_bytes":100}}' "$work/work/input.txt" | bin/runner-proc encode >"$work/cat.bin"
	printf '{"argv":["/bin/sh","-c","cat %s"],"caps":{"max_stdout_bytes":100}}' "$work/work/input.txt" | bin/runner-proc encode >"$work/sh.bin"
	record process-api --policy-log "$work/policy.log" -- sh -c '"$0" run --policy "$1/process.json" <"$1/cat.bin" && "$0" run --policy "$1/process.json" <"$1/sh.bin"' \
		"$work/tools/runner-proc" "$work"
	record intents --intents -- "$work/tools/intents.sh" https://payments.example/v1/payments
	record intents-cut --intents -- sh -c '"$0" https://payments.example/v1/payments && "$0" https://payments.example/v1/payments' "$work/tools/intents.sh"
	record sdk-truncated $sdk -- sh -c 'printf "{\"schema\":\"assay.runner.sdk_ev" >>"$ASSAY_RUNNER_SDK_EVENT_LOG"'
}
