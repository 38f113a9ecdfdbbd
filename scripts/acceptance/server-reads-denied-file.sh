#!/bin/sh
# What a rule that denies names is watched from the start: a server that reads it while it starts does
# not read clean, although no call names it. A denied call on a link to it, and an ordinary call, do.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"

mkdir "$tmp/secret" && echo key >"$tmp/secret/key"
secret=$(realpath "$tmp/secret")
sed -i "s|^rules:|rules:\\n  - {id: no-secret, deny: '*', args: [{at: \$.path, under: $tmp/secret}]}|" "$policy"
# shellcheck disable=SC2016 # for the measured shell
measure starts --policy "$policy" -- "$parts/mcp-client" "$id=read_file=$input" -- "$parts/runner-policy" --policy "$policy" -- \
	sh -c 'read -r line <"$0/key" && exec "$1/mcp-server"' "$tmp/secret" "$parts" >/dev/null
require cgroup=clean,policy=present,correlation=partial
ambiguous "effect_on_denied_target:$secret"
# The client may have asked for initialize already.
check "what the server did before its first call is listed" '.report.notes | any(test("^server_effect_(before_calls|in_requests):read '"$secret"'/key$"))'

ln -s "$tmp/secret/key" "$tmp/work/link" # which the policy looks up: the call is denied, and nothing reads it
measure denied --policy "$policy" -- "$parts/mcp-client" "$id=read_file={\"path\":\"$tmp/work/link\"}" -- "$parts/runner-policy" --policy "$policy" -- "$parts/mcp-server" >/dev/null
require cgroup=clean,policy=present,correlation=clean
unambiguous

measure ordinary --policy "$policy" -- "$parts/mcp-client" "$id=read_file=$input" -- "$parts/runner-policy" --policy "$policy" -- "$parts/mcp-server" >/dev/null
require cgroup=clean,policy=present,correlation=clean
unambiguous
