#!/bin/sh
# Network rules are enforced: a program that connects gets EPERM where they deny and a
# connection where they allow. Each refusal is counted and has a line that names its rule.
# With rules that cannot be enforced, nothing runs.
#   exit 0 accepted, 1 not, 40 could not be tested here
set -eu
# shellcheck source=scripts/lib/calls.sh
. "$(dirname "$0")/../lib/calls.sh"
# shellcheck source=scripts/lib/listener.sh
. scripts/lib/listener.sh

listen port_open port_closed
listener=$parts/listener open=$(cat "$tmp/port_open.address") closed=$(cat "$tmp/port_closed.address")
rules() { # rules [RULE]: two rules, and RULE if there is one
	printf '%s\n' "schema: runner.policy.v0" "network:" "  default: allow" "  rules:" \
		"    - {id: no-documentation, deny: [203.0.113.0/24]}" \
		"    - {id: no-port, deny: [127.0.0.1], ports: [${closed##*:}]}" "$@" >"$policy"
}
must() { # must WHAT HAVE WANT
	[ "$2" = "$3" ] || fail "$1: have $2, want $3"
	echo "ok    $1"
}

rules
groups=$(sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup2 .*/\1/p' /proc/self/mountinfo | head -n 1)
# shellcheck disable=SC2016 # for the measured shell
measure blocked --policy "$policy" -- sh -c 'export LC_ALL=C && stat -c %i "$4$(sed -n "s/^0:://p" /proc/self/cgroup)" >"$5" &&
	"$0" dial "$1" && ! "$0" dial "$2" && ! "$0" dial "$3"' \
	"$listener" "$open" "$closed" 203.0.113.7:443 "$groups" "$tmp/work/id" 2>"$tmp/stderr" || fail "the run: $(cat "$tmp/stderr")"
must "both were refused with EPERM" "$(grep -c 'connect: operation not permitted$' "$tmp/stderr")" 2
require cgroup=clean,policy=absent,sdk=absent,correlation=clean
check "the note counts what was blocked" '.health.notes | any(. == "s4_network_policy: rules=2 blocked=2 policy=sha256:'"$(sha256sum <"$policy" | cut -c1-64)"'")'
tar -xzOf "$archive" layers/kernel.ndjson | sed 's/^.*"event_type"/{"event_type"/' >"$tmp/lines"
must "each has a line" "$(grep -c '^{"event_type":20,' "$tmp/lines")" 2
refusal() { # refusal NUMBER ADDRESS: its line, and after it the line of the call that failed
	must "rule $1 refused $2, and the call failed" "$(sed -n '/"event_type":20,.*"value":"'"$2"'"/{N;p;}' "$tmp/lines")" \
		'{"event_type":20,"kind":"connect_blocked","value":"'"$2"'","cgroup_id":'"$(cat "$tmp/work/id")"',"network_destination":"'"${2%:*}"'","network_port":'"${2##*:}"',"rule_id":'"$1"'}
{"event_type":2,"kind":"connect","value":"'"$2"'","return_value":-1,"status":"error"}'
}
refusal 1 203.0.113.7:443
refusal 2 "$closed"
must "the allowed connection has no refusal" "$(grep -c '"kind":"connect","value":"'"$open"'","return_value":\(0,"status":"success"\|-115\|-115,"connect_result":0\)}' "$tmp/lines")" 1

nothing() { # nothing CODE WHY [FLAG…]: the run ends with this code, for this reason, before its command starts
	code=0 want=$1 why=$2
	shift 2
	measure nothing --policy "$policy" "$@" -- touch "$tmp/ran" 2>"$tmp/stderr" || code=$?
	must "$why: nothing ran" "$code $(grep -c "$why" "$tmp/stderr") $(find "$tmp/ran" "$archive" 2>/dev/null)" "$want 1 "
}
nothing 4 "without a kernel layer nothing enforces them" --no-kernel
rules '    - {id: no-socket, deny: ["unix:/run"], on: [bind]}'
nothing 3 "a unix socket in a rule on bind"
