#!/bin/sh
# A step of action.yml: verifies the archive and writes the report to the job's summary. Its exit
# code is that of runner-verify.
set -eu
bin=${RUNNER_BIN:-$(dirname "$0")/../../bin}
report=$(mktemp)
code=0
"$bin/runner-verify" --explain --require "$RUNNER_REQUIRE" "$RUNNER_ARCHIVE" >"$report" 2>&1 || code=$?
identity=$("$bin/runner-verify" --json "$RUNNER_ARCHIVE" 2>/dev/null | sed -n 's/.*"identity":"\([^"]*\)".*/\1/p')
cat "$report"
{
	if [ $code = 0 ]; then echo "### runner: verified"; else echo "### runner: not as demanded, or not valid (exit $code)"; fi
	echo
	sed 's/^/    /' "$report" # indented text is code: no name in the record is read as Markdown
} >"$report.md"
rm -f "$report"
cat "$report.md" >>"$GITHUB_STEP_SUMMARY"
{
	echo "report=$report.md"
	echo "identity=$identity"
} >>"$GITHUB_OUTPUT"
exit $code
