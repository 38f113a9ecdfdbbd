#!/bin/sh
# A step of action.yml: verifies the archive and writes the report to the job's summary. Its exit
# code is that of runner-verify.
set -eu
bin=${RUNNER_BIN:-$(dirname "$0")/../../bin}
report=$(mktemp)
code=0
"$bin/runner-verify" --explain --require "$RUNNER_REQUIRE" "$RUNNER_ARCHIVE" >"$report" 2>&1 || code=$?
identity=$("$bin/runner-verify" --json "$RUNNER_ARCHIVE" 2>/dev/null | sed -n 's/.*"identity":"\([^"]*\)".*/\1/p')
# No name in the record is read as a command of the job's log.
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
echo "::stop-commands::$token"
cat "$report"
echo "::$token::"
most=60000 # bytes; a comment may have 65536 characters, a summary 1 MiB
{
	if [ $code = 0 ]; then echo "### runner: verified"; else echo "### runner: not as demanded, or not valid (exit $code)"; fi
	echo
	# indented text is code: no name in the record is read as Markdown
	sed 's/^/    /' "$report" | LC_ALL=C awk -v most=$most '{ n += length($0) + 1; if (n > most) { cut = 1; exit }; print } END { if (cut) print "\n… the rest is in the log of this step, and in the archive" }'
} >"$report.md"
rm -f "$report"
cat "$report.md" >>"$GITHUB_STEP_SUMMARY"
{
	echo "report=$report.md"
	echo "identity=$identity"
} >>"$GITHUB_OUTPUT"
exit $code
