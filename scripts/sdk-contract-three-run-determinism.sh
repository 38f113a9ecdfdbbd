#!/bin/sh
# Three measured runs: plain SDK events.
#   exit 0 same, 1 different, 40 could not be tested here
set -eu
# shellcheck source=scripts/calls.sh
. "$(dirname "$0")/calls.sh"
# shellcheck source=scripts/scenarios.sh
. scripts/scenarios.sh
three_runs sdk_contract
