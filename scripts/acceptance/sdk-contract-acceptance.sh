#!/bin/sh
# Plain SDK events, which the command writes to the path that it was given. They become the
# SDK layer and change no other claim.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/scenarios.sh
. scripts/lib/scenarios.sh
# shellcheck source=scripts/lib/sdk-log.sh
. scripts/lib/sdk-log.sh

sdk_contract accepted
require cgroup=clean,policy=absent,sdk=self_reported,correlation=clean
check "SDK data binds nothing" '.report.bindings == [] and .health.policy_layer == "absent"'
check "three events, one call" '.health.notes | any(. == "s5_sdk_capture: sdk_events=3 sdk_tool_calls=1")'
check "the command was given three names" '.run.env_keys | contains(["ASSAY_RUNNER_RUN_ID", "ASSAY_RUNNER_SDK_EVENT_LOG", "ASSAY_RUNNER_SDK_EVENT_SCHEMA"])'

measure without --no-kernel --agent-shim openai-agents -- "$fixtures/sdk-event-wrapper.sh" tc_sdk_001 read_file true
check "SDK data does not make a kernel layer" '.health.kernel_layer == "absent" and .health.sdk_layer == "self_reported"'
# shellcheck disable=SC2016 # for the measured shell
measure none -- sh -c 'test -z "${ASSAY_RUNNER_SDK_EVENT_LOG:-}"'
require cgroup=clean,sdk=absent

# Standard output and standard error carry no events, whatever the command prints.
# shellcheck disable=SC2016
measure printed --agent-shim openai-agents -- sh -c 'echo "$1" && echo "$1" >&2' sh "$(event 0 run_finished)"
require cgroup=clean,policy=absent,sdk=absent,correlation=partial
ambiguous sdk_log_empty
