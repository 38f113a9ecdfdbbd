#!/bin/sh
# What the SDK says and what the policy decided name the same call.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/calls.sh
. "$(dirname "$0")/calls.sh"
# shellcheck source=scripts/scenarios.sh
. scripts/scenarios.sh

sdk_policy accepted
demand cgroup=clean,policy=present,sdk=self_reported,correlation=clean
unambiguous
bound_to_its_read
