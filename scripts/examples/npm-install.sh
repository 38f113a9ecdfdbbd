#!/bin/sh
# Installs npm packages while keys are out of reach of their install scripts, and says what the
# scripts executed, where they connected, and what was refused.
#   npm-install.sh DIR [NPM-FLAG…]   DIR has a package.json
#   exit: that of npm; 1 if the record is not whole or a rule refused something
set -eu
bin=$(cd "${BIN:-$(dirname "$0")/../../bin}" && pwd)
archive=${ARCHIVE:-$PWD/npm.tar.gz}
cd "${1:?DIR}"
shift
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo # for the probes only: npm runs as you
policy=$(mktemp)
trap 'rm -f "$policy"' EXIT

keys= # a denied path must be there: some mechanisms cannot deny what is made later
for name in .ssh .aws .gnupg .netrc; do [ ! -e "$HOME/$name" ] || keys="$keys${keys:+, }\"$HOME/$name\""; done
{
	echo 'schema: runner.policy.v0'
	echo 'network: {default: allow, rules: [{id: no-metadata, deny: [169.254.169.254, "fd00:ec2::254"]}]}'
	[ -z "$keys" ] || echo "files: {rules: [{id: no-keys, deny: [$keys]}]}"
} >"$policy"

# --noise loader: what happens in node_modules is evidence here, not noise.
code=0
$sudo "$bin/runner-exec" --noise loader --policy "$policy" --archive "$archive" -- npm install --foreground-scripts "$@" || code=$?
[ -e "$archive" ] || exit $code
"$bin/runner-show" "$archive"
"$bin/runner-verify" --require kernel=complete,drops=0,cgroup=clean \
	--assert 'any(.kernel[]; .kind | test("_blocked$")) | not' "$archive" >/dev/null
exit $code
