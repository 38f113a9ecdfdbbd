#!/bin/sh
# File and exec rules are enforced, by whatever enforces them on this kernel: what they deny
# fails for the program, by each name that it has, and what they allow works. Each refusal
# is counted and has a line that names its rule. With rules that cannot be enforced, nothing runs.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"

work=$tmp/work
mkdir -p "$work/tools" "$work/secret/open"
echo key >"$work/secret/key" && echo known >"$work/secret/open/known"
ln -s secret "$work/link" && cp "$(command -v cat)" "$work/tools/cat"
rules() { printf '%s\n' "schema: runner.policy.v0" "$@" >"$policy"; }
must() { # must WHAT HAVE WANT
	[ "$2" = "$3" ] || fail "$1: have $2, want $3"
	echo "ok    $1"
}
rules "files: {rules: [{id: open, allow: $work/secret/open}, {id: no-secret, deny: $work/link}]}" \
	"exec: {rules: [{id: no-tools, deny: $work/tools}]}"
cat >"$parts/attempts" <<'EOT'
cd "$1"
attempt() { "$@" >/dev/null 2>&1 && echo "did $*" >>done || echo "refused $*" >>done; }
attempt cat secret/key
attempt cat link/key
attempt cat secret/../secret/key
attempt cat "/proc/self/root$1/secret/key"
attempt cp input.txt secret/new
attempt rm secret/key
attempt mv secret moved
attempt ln secret/key hard
attempt tools/cat input.txt
attempt cat secret/open/known input.txt
EOT
mechanisms=$("$bin"/runner-capture --probe | grep '^file rules by ')
echo "$mechanisms" | grep -Eq '(lsm|fanotify): attached' || skip "no mechanism enforces these rules here: $mechanisms"
measure files --policy "$policy" -- sh "$parts/attempts" "$work" 2>"$tmp/stderr" || fail "the run: $(cat "$tmp/stderr")"
must "what is denied failed, what is allowed did not" "$(cut -d ' ' -f 1 "$work/done" | tr '\n' ' ')" \
	"refused refused refused refused refused refused refused refused refused did "
must "nothing was changed" "$(cd "$work" && find . ! -type d | sort | tr '\n' ' ')" \
	"./done ./input.txt ./link ./secret/key ./secret/open/known ./tools/cat "
require cgroup=clean,policy=absent,sdk=absent,correlation=clean
tar -xzOf "$archive" layers/kernel.ndjson | sed -n 's/^.*"event_type":10,"kind":"file_blocked",//p' >"$tmp/lines"
must "each rule that refused is named" "$(sed 's/.*"rule_id":\([0-9]*\).*/\1/' "$tmp/lines" | sort -u | tr '\n' ' ')" "2 3 "
for path in secret/key tools/cat; do
	grep -q '^"value":"'"$work/$path"'","cgroup_id":[1-9]' "$tmp/lines" || fail "no refusal of $path: $(cat "$tmp/lines")"
done
check "the note counts what was refused" '.health.notes | any(startswith("s4_file_policy: rules=3 blocked='"$(wc -l <"$tmp/lines" | tr -d ' ')"' mechanism=")
	and endswith(" policy=sha256:'"$(sha256sum <"$policy" | cut -c1-64)"'"))'

nothing() { # nothing WHY [FLAG…]: the run ends with code 4, for this reason, before its command starts
	code=0 why=$1
	shift
	measure nothing --policy "$policy" "$@" -- touch "$tmp/ran" 2>"$tmp/stderr" || code=$?
	must "$why: nothing ran" "$code $(grep -c "$why" "$tmp/stderr") $(find "$tmp/ran" "$archive" 2>/dev/null)" "4 1 "
}
nothing "without a kernel layer nothing enforces them" --no-kernel
rules "files: {rules: [{id: anywhere, deny: /proc/self/root}]}"
nothing "a symlink in it leads to a different place in each process"
