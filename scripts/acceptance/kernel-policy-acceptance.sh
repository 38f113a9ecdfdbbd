#!/bin/sh
# One MCP call through the policy proxy, without an SDK. The decision, its window and what
# the tool server did in the window are joined, and nothing is ambiguous.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/scenarios.sh
. scripts/lib/scenarios.sh

kernel_policy accepted
require cgroup=clean,policy=present,sdk=absent,correlation=clean
unambiguous
bound_to_its_read
same "the tool" .surface.mcp_tools read_file
same "the decision" .surface.policy_decisions allow:read_file
