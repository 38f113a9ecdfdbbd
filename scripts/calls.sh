# shellcheck shell=sh
# Sourced by the scripts that measure tool calls: a work folder, a policy, and words
# to measure, to demand and to compare. Exits 40, loudly, where something that it
# needs is not here.
# shellcheck disable=SC2034 # for those who source this
cd "$(dirname "$0")/.." || exit 1
run=$(basename "$0" .sh) # also the cgroup's name: scripts may run at the same time
fixtures=$PWD/testdata/fixtures
[ -n "${BIN:-}" ] || make -s build || exit 1
bin=$(cd "${BIN:-bin}" && pwd) || exit 1
untested() { echo "SKIPPED, NOT TESTED: $*" && exit 40; }
why=$("$bin"/runner-capture --probe 2>&1) || untested "this kernel cannot be observed: $why"

tmp=$(cd "$(mktemp -d)" && pwd -P) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$tmp/work" "$tmp/parts" "$tmp/run" || exit 1
parts=$tmp/parts # both ends of an MCP conversation, and the proxy between them
ln -s "$bin/runner-policy" "$parts/runner-policy"
for part in mcp-client mcp-server; do
	if [ -x "$bin/$part" ]; then
		ln -s "$bin/$part" "$parts/$part"
	else
		CGO_ENABLED=0 go build -o "$parts/" "./testdata/workload/$part" || exit 1
	fi
done
echo "known input" >"$tmp/work/input.txt"
policy=$tmp/policy.yaml && cat >"$policy" <<EOT
schema: runner.policy.v0
default: deny
rules:
  - id: read-work
    allow: [read_*, barrier]
    args: [{at: \$.path, under: $tmp/work}]
EOT
input="{\"path\":\"$tmp/work/input.txt\"}" output="{\"path\":\"$tmp/work/output.txt\",\"content\":\"x\"}" id=tc_runner_policy_001

measure() { # measure NAME [FLAG…] -- COMMAND…: the archive is $tmp/NAME.tar.gz
	name=$1
	shift
	archive=$tmp/$name.tar.gz
	rm -f "$tmp/work/output.txt" "$tmp/work/extra.txt"
	TMPDIR=$tmp/run "$bin"/runner-exec --run-id "$run" --archive "$archive" "$@"
}
demand() { # demand K=V,…: of the archive that was measured last
	"$bin"/runner-verify --require "kernel=complete,drops=0,$1" "$archive" >/dev/null || exit 1
	echo "ok    $1"
}
holds() { # holds WHAT EXPRESSION
	"$bin"/runner-verify --assert "$2" "$archive" >/dev/null || { echo "FAIL  $1: $2" && exit 1; }
	echo "ok    $1"
}
same() { # same WHAT VALUE…: EXPRESSION on the values as a JSON array of strings
	what=$1 expression=$2 values=
	shift 2
	for value; do values="$values${values:+,}\"$value\""; done
	holds "$what" "$expression == ([$values] | sort)"
}
ambiguous() { same "named as ambiguous: $*" .report.ambiguities "$@"; } # ambiguous CODE…: these and no others
unambiguous() { same "nothing is ambiguous" .report.ambiguities; }
