#!/bin/sh
# A command that says what it wants to have done. The layer has it in one form, nothing of it
# is done, and no other claim changes. A line that cannot be ends the layer there.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"

url=https://payments.example/v1/payments
measure intents --intents -- "$fixtures/intents.sh" "$url"
require cgroup=clean,policy=absent,sdk=absent,correlation=clean
check "the note counts them" '.health.notes | any(. == "s6_intents: intents=3 self-reported")'
check "no file was written and nobody was asked" '[.effects[]? | tostring | select(contains("today.txt") or contains("payments"))] == []'
unambiguous

measure wants-nothing --intents -- true
require cgroup=clean,correlation=clean
check "a command that wants nothing has no note" '.health.notes | all(startswith("s6_intents") | not)'

refused() { # refused WHY MEMBERS: as the only line
	# shellcheck disable=SC2016 # for the measured shell
	measure "$1" --intents -- sh -c 'printf "{\"schema\":\"%s\",\"run_id\":\"%s\",\"seq\":0,%s}\n" "$ASSAY_RUNNER_INTENT_SCHEMA" "$ASSAY_RUNNER_RUN_ID" "$0" >>"$ASSAY_RUNNER_INTENT_LOG"' "$2"
	require cgroup=clean,correlation=partial
	ambiguous "intents_log_invalid:1:$1"
}
refused bad_field '"intent_type":"files.write","payload":{"path":"../a","text":""}'
refused bad_type '"intent_type":"write","payload":{}'
refused secret '"intent_type":"http.request","payload":{"method":"GET","url":"https://a.example/","headers":{"cookie":"a=b"}}'
