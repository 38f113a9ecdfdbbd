package tool

import (
	"os"
	"strconv"
	"time"
)

// EnvEpoch is the time of making that reproducible builds give, in seconds since 1970.
const EnvEpoch = "SOURCE_DATE_EPOCH"

// GeneratedAt is when a report says that it was made: the value of the flag, else of
// SOURCE_DATE_EPOCH, in the form of RFC 3339 in UTC. "" without either: a report has no time then,
// so that the same inputs give the same bytes.
func (e *Env) GeneratedAt(flag string) (string, error) {
	if s := e.Flag.String(flag); s != "" {
		t, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return "", BadValue(flag, s, "a time such as 2026-11-22T21:00:00Z")
		}
		return t.UTC().Format(time.RFC3339), nil
	}
	s := os.Getenv(EnvEpoch)
	if s == "" {
		return "", nil
	}
	n, err := strconv.ParseUint(s, 10, 38)
	if err != nil {
		return "", Usagef("$%s is %q: expected seconds since 1970", EnvEpoch, s)
	}
	return time.Unix(int64(n), 0).UTC().Format(time.RFC3339), nil
}
