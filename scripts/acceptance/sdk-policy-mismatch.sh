#!/bin/sh
# The SDK reports a call that the policy proxy did not see, and the other way round: the report
# names both calls.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/scenarios.sh
. scripts/lib/scenarios.sh

sdk_policy_mismatch accepted
require cgroup=clean,policy=present,sdk=self_reported,correlation=partial
ambiguous "policy_call_not_in_sdk:$id" sdk_tool_call_without_policy_binding:tc_runner_sdk_only_001
bound_to_its_read
