# shellcheck shell=sh
# Sourced after measure.sh: TCP listeners outside the measured run. They end with the script.
# shellcheck disable=SC2154 # measure.sh
listen() { # listen NAME…: the address of each is in $tmp/NAME.address
	workload listener
	mkfifo "$tmp/open" || exit 1
	for name; do "$parts/listener" <"$tmp/open" >"$tmp/$name.address" & done
	exec 9>"$tmp/open" # a listener ends when the last writer of its standard input has ended
	for name; do
		tries=0
		until [ -s "$tmp/$name.address" ]; do
			tries=$((tries + 1))
			[ $tries -lt 100 ] || fail "the listener did not start"
			sleep 0.05
		done
	done
}
