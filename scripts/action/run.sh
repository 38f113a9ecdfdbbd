#!/bin/sh
# A step of action.yml: measures the command. Its exit code is the command's. Only runner-capture
# needs root; under sudo the command still runs as the user of the job.
set -eu
bin=${RUNNER_BIN:-$(dirname "$0")/../../bin}
case $RUNNER_ARCHIVE in *"
"*) echo "action: error: the archive's name has a line feed" >&2 && exit 2 ;; esac
set -- --archive "$RUNNER_ARCHIVE"
[ -z "${RUNNER_POLICY:-}" ] || set -- "$@" --policy "$RUNNER_POLICY"
code=0
# sudo resets the environment; the command gets the job's.
sudo -E env "PATH=$PATH" "$bin/runner-exec" "$@" -- sh -ec "$RUNNER_COMMAND" || code=$?
[ ! -e "$RUNNER_ARCHIVE" ] || echo "archive=$RUNNER_ARCHIVE" >>"$GITHUB_OUTPUT"
exit $code
