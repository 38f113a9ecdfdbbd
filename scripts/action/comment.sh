#!/bin/sh
# A step of action.yml: comments on the pull request, in one comment that later runs replace.
set -eu
if [ -z "${RUNNER_PULL:-}" ]; then
	echo "no comment: this run is not of a pull request"
	exit 0
fi
gh pr comment "$RUNNER_PULL" --edit-last --body-file "$RUNNER_REPORT" 2>/dev/null ||
	gh pr comment "$RUNNER_PULL" --body-file "$RUNNER_REPORT"
