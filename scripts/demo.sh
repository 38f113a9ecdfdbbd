#!/bin/sh
# make demo: measure a small command for real where this machine allows it, else
# replay a recorded run through the same stages; verify; say what to look at.
set -eu
cd "$(dirname "$0")/.."
out=demo-run.tar.gz
recorded=testdata/runs/kernel-only/1-raw.ndjson

if why=$(bin/runner-capture --probe 2>&1); then
	echo "A REAL RUN: this kernel is being observed while the command works."
	echo "\$ bin/runner-exec --archive $out -- sh -c 'grep -c . README.md; env | wc -l >/dev/null'"
	bin/runner-exec --archive "$out" -- sh -c 'grep -c . README.md; env | wc -l >/dev/null'
else
	echo "A REPLAY, NOT A REAL RUN: $why"
	echo "The recorded stream $recorded goes through the same stages (sudo make demo measures for real)."
	echo "\$ bin/runner-normalize $recorded | bin/runner-correlate | bin/runner-pack -o $out"
	bin/runner-normalize "$recorded" | bin/runner-correlate | bin/runner-pack -o "$out"
fi

echo
echo "\$ bin/runner-verify --require kernel=complete,drops=0,cgroup=clean $out"
bin/runner-verify --require kernel=complete,drops=0,cgroup=clean "$out"
echo
echo "What was executed, opened and reached (capability-surface.json):"
tar -xzOf "$out" capability-surface.json | tr ',' '\n' | head -n 40
echo
call=testdata/runs/tool-denied-but-done
echo; echo "A tool call, replayed from $call: an agent did what the policy had denied to its tool."
bin/runner-correlate --policy "$call/policy.log.ndjson" "$call/2-kernel.ndjson" | bin/runner-pack -o demo-call.tar.gz
echo "\$ bin/runner-verify --explain demo-call.tar.gz"
bin/runner-verify --explain demo-call.tar.gz
cat <<EOT

What to look at next:
  tar -tzf $out                                  the eight members
  tar -xzOf $out layers/kernel.ndjson | less     every claim, one line each
  tar -xzOf $out observation-health.json         how well it was seen, and what could not be
  bin/runner-verify --json $out                  the findings, for a program
EOT
