# Of go test -v: a test that passed shows only its t.Log lines, any other test everything.
function all(  i) { for (i = 0; i < n; i++) print held[i]; n = 0 }
/^=== / || /^ +--- PASS/ || /^PASS$/ || /no tests to run/ || /no test files/ { next }
/^--- PASS/ {
	for (i = 0; i < n; i++) if (held[i] ~ /^ +[a-z0-9_]+_test\.go:[0-9]+: /) print held[i]
	n = 0; print; fflush(); next
}
/^[^ ]/ || /^ +--- / { all(); print; fflush(); next }
{ held[n++] = $0 }
END { all() }
