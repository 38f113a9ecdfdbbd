# shellcheck shell=sh
# Sourced by the scripts that measure tool calls: measure.sh, an MCP client, an MCP server
# and the policy proxy between them, a policy file and the arguments of two calls.
# shellcheck disable=SC2034,SC2154 # variables of and for other scripts
# shellcheck source=scripts/lib/measure.sh
. "$(dirname "$0")/../lib/measure.sh"
ln -s "$bin/runner-policy" "$parts/runner-policy"
workload mcp-client mcp-server
policy=$tmp/policy.yaml && cat >"$policy" <<EOT
schema: runner.policy.v0
default: deny
rules:
  - id: read-work
    allow: [read_*, barrier]
    args: [{at: \$.path, under: $tmp/work}]
    also: [\$.n] # how many calls barrier waits for
EOT
input="{\"path\":\"$tmp/work/input.txt\"}" output="{\"path\":\"$tmp/work/output.txt\",\"content\":\"x\"}" id=tc_runner_policy_001
