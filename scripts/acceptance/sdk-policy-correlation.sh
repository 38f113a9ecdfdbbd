#!/bin/sh
# The SDK and the policy proxy report the same call.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/scenarios.sh
. scripts/lib/scenarios.sh

sdk_policy accepted
require cgroup=clean,policy=present,sdk=self_reported,correlation=clean
unambiguous
bound_to_its_read
