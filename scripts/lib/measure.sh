# shellcheck shell=sh
# Sourced first by every acceptance script: a work folder, functions that measure a command,
# and functions that check its archive. Exits 40, with a message, where something is missing.
# A script that needs no eBPF sets kernel=not_needed before.
# shellcheck disable=SC2034 # other scripts use these variables
cd "$(dirname "$0")/../.." || exit 1
run=$(basename "$0" .sh) # the run id and the cgroup's name: scripts may run at the same time
fixtures=$PWD/testdata/fixtures
[ -n "${BIN:-}" ] || make -s build || exit 1 # tests bring their own
bin=$(cd "${BIN:-bin}" && pwd) || exit 1
skip() { echo "SKIPPED, NOT TESTED: $*" && exit 40; }
fail() { echo "FAIL  $*" && exit 1; }
[ "${kernel:-}" = not_needed ] || why=$("$bin"/runner-capture --probe 2>&1) || skip "this kernel cannot be observed: $why"

tmp=$(cd "$(mktemp -d)" && pwd -P) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$tmp/work" "$tmp/parts" "$tmp/run" || exit 1
parts=$tmp/parts # programs that take part in a run
workload() { # workload NAME…: programs of testdata/workload, into $parts
	for part; do
		if [ -x "$bin/$part" ]; then
			ln -s "$bin/$part" "$parts/$part"
		else
			CGO_ENABLED=0 go build -o "$parts/" "./testdata/workload/$part" || exit 1
		fi
	done
}
echo "known input" >"$tmp/work/input.txt"

measure() { # measure NAME [FLAG…] -- COMMAND…: the archive is $tmp/NAME.tar.gz
	name=$1
	shift
	archive=$tmp/$name.tar.gz
	rm -f "$tmp/work/output.txt" "$tmp/work/extra.txt"
	TMPDIR=$tmp/run "$bin"/runner-exec --run-id "$run" --archive "$archive" "$@" 9>&-
}
require() { # require K=V,…: of the last archive; a complete kernel layer unless kernel= is first
	case $1 in kernel=*) all=$1 ;; *) all=kernel=complete,drops=0,$1 ;; esac
	"$bin"/runner-verify --require "$all" "$archive" >/dev/null || exit 1
	echo "ok    $1"
}
check() { # check WHAT EXPRESSION: a jq expression that must be true of the last archive
	"$bin"/runner-verify --assert "$2" "$archive" >/dev/null || fail "$1: $2"
	echo "ok    $1"
}
same() { # same WHAT EXPRESSION VALUE…: these values and no others, in any order
	what=$1 expression=$2 values=
	shift 2
	for value; do values="$values${values:+,}\"$value\""; done
	check "$what" "$expression == ([$values] | sort)"
}
ambiguous() { same "the report's ambiguities: $*" .report.ambiguities "$@"; } # ambiguous CODE…: these and no others
# noted CODE…: these notes and no others, apart from those that list what servers did outside of calls
noted() { same "the report's notes: $*" '(.report.notes // [] | map(select(startswith("server_effect_") | not)))' "$@"; }
unambiguous() { same "no ambiguity" .report.ambiguities; }
