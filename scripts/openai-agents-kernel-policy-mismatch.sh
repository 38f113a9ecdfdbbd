#!/bin/sh
# A real agent whose SDK knows the call under another id than the policy proxy.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/calls.sh
. "$(dirname "$0")/calls.sh"
# shellcheck source=scripts/scenarios.sh
. scripts/scenarios.sh

openai_agents_mismatch accepted
demand cgroup=clean,policy=present,sdk=self_reported,correlation=partial
ambiguous "policy_call_not_in_sdk:$id" sdk_tool_call_without_policy_binding:tc_runner_sdk_only_001
bound_to_its_read
