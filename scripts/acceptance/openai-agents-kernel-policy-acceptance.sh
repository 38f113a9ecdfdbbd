#!/bin/sh
# A real @openai/agents agent. Its tool call goes through the policy proxy to a real MCP file
# server, all in the measured cgroup: three layers, one call, no ambiguity.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/scenarios.sh
. scripts/lib/scenarios.sh

need_agents
openai_agents_kernel_policy accepted
require cgroup=clean,policy=present,sdk=self_reported,correlation=clean
unambiguous
bound_to_its_read
same "the tool" .surface.mcp_tools read_file
check "it connected to nothing on the network" '.surface.network_endpoints == []'
