#!/bin/sh
# Tests the policy proxy between clients and servers that others wrote: the official Go SDK,
# and from npm the TypeScript SDK and the file server, in both eras of the protocol.
#   parties.sh [GO-TEST-FLAG…]
set -eu
cd "$(dirname "$0")/.."
[ -n "${BIN:-}" ] || make -s build
if ! why=$(go -C testdata/parties mod download 2>&1); then
	echo "SKIPPED, NOT TESTED: parties that others wrote: $why"
	exit 40
fi
[ -d testdata/fixtures/openai-agents/node_modules ] || # the tests skip them then
	echo "SKIPPED, NOT TESTED: parties from npm: npm ci --prefix testdata/fixtures/openai-agents"
BIN=$(cd "${BIN:-bin}" && pwd) exec go -C testdata/parties test -count=1 "$@" ./...
