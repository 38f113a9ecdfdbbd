#!/bin/sh
# A real @openai/agents agent, its tool call through the policy proxy to a real MCP file
# server, all of it in the measured cgroup: three layers, one call, no ambiguity.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/calls.sh
. "$(dirname "$0")/calls.sh"
# shellcheck source=scripts/scenarios.sh
. scripts/scenarios.sh

openai_agents accepted
demand cgroup=clean,policy=present,sdk=self_reported,correlation=clean
unambiguous
bound_to_its_read
same "the tool" .surface.mcp_tools read_file
holds "it reached nobody on the network" '.surface.network_endpoints == []'
