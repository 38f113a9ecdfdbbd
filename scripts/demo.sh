#!/bin/sh
# make demo: measures a small command, or replays a recorded run where this kernel cannot
# be observed; then verifies and explains it; then does the same with a tool call.
set -eu
cd "$(dirname "$0")/.."

wrap() { # wrap: lines over 80 columns; the rest of one is indented under its first word
	awk 'length($0) <= 80 { print; next }
	{
		match($0, /^ *([A-Za-z]+  +)?/)
		indent = sprintf("%" (RLENGTH + (RLENGTH == 0 ? 2 : 0)) "s", "")
		line = substr($0, 1, RLENGTH)
		n = split(substr($0, RLENGTH + 1), words, " ")
		for (i = 1; i <= n; i++) {
			if (i > 1 && length(line) + 1 + length(words[i]) > 80) {
				print line
				line = indent words[i]
			} else
				line = line (i > 1 ? " " : "") words[i]
		}
		print line
	}'
}
show() { # show COMMAND-LINE: prints it, runs it and prints its output
	echo "\$ $1"
	code=0
	output=$(eval "$1" 2>&1) || code=$?
	echo "$output" | wrap
	echo
	return $code
}

echo "1. MEASURE A COMMAND"
echo
if why=$(bin/runner-capture --probe 2>&1); then
	echo "A REAL RUN: this kernel is observed while the command works."
	show "bin/runner-exec --archive demo-run.tar.gz -- sh -c 'grep -c . README.md; env | wc -l >/dev/null'"
else
	recorded=testdata/runs/kernel-only/1-raw.ndjson
	echo "A REPLAY, NOT A REAL RUN: $why" | wrap
	echo "A recorded stream goes through the same stages. For a real run: sudo make demo"
	show "bin/runner-normalize $recorded | bin/runner-correlate | bin/runner-pack -o demo-run.tar.gz"
fi
echo "2. CHECK THE RECORD, AND SEE WHAT THE COMMAND DID"
echo
show "bin/runner-verify --require kernel=complete,drops=0,cgroup=clean demo-run.tar.gz"
show "bin/runner-show demo-run.tar.gz"
echo "3. A TOOL CALL: a policy denied it, and the agent did the same by itself"
echo
run=testdata/runs/tool-denied-but-done
show "bin/runner-correlate --policy $run/policy.log.ndjson $run/2-kernel.ndjson | bin/runner-pack -o demo-call.tar.gz"
show "bin/runner-verify --explain demo-call.tar.gz"
cat <<EOT
What to look at next:
  bin/runner-show --tree demo-run.tar.gz    every process; --list every operation
  bin/runner-verify -v demo-run.tar.gz      its claims, and what it never says
  bin/runner-verify --json demo-run.tar.gz  the same for a program
  tar -tzf demo-run.tar.gz                  the members of the archive
  tar -xzOf demo-run.tar.gz layers/kernel.ndjson   a line for each kernel event
EOT
