#!/bin/sh
# Measures an agent whose MCP servers are started through runner-policy, and shows for each tool
# call what the policy decided and what the kernel then saw. The rules of POLICY for network, files
# and programs hold for all that the agent does.
#   mcp-agent.sh POLICY AGENT [ARG…]
#   exit: that of the agent; 1 if the record is not whole, or a call and what happened do not agree
# How an MCP client starts a server through runner-policy:
#   {"command": "runner-policy", "args": ["--policy", "POLICY", "--name", "files", "--", "SERVER"]}
set -eu
bin=${BIN:-$(dirname "$0")/../../bin}
archive=${ARCHIVE:-agent.tar.gz} policy=${1:?POLICY}
shift
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo # for the probes only: the agent runs as you

"$bin/runner-policy" --check "$policy"
code=0
$sudo "$bin/runner-exec" --policy "$policy" --archive "$archive" -- "$@" || code=$?
[ -e "$archive" ] || exit $code
"$bin/runner-verify" --explain "$archive"
"$bin/runner-verify" --require kernel=complete,drops=0,cgroup=clean,policy=present,correlation=clean "$archive" >/dev/null
exit $code
