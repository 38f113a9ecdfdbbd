package tool

import (
	"os"
	"strconv"
	"time"
)

// EnvEpoch is the time of making that reproducible builds give, in seconds since 1970.
const EnvEpoch = "SOURCE_DATE_EPOCH"

// FlagGeneratedAt is the flag that gives that time.
const FlagGeneratedAt = "generated-at"

// GeneratedAt is when a report says that it was made: the value of --generated-at, else of
// SOURCE_DATE_EPOCH, in the form of RFC 3339 in UTC. "" without either: a report has no time then,
// so that the same inputs give the same bytes.
func (e *Env) GeneratedAt() (string, error) {
	if s := e.Flag.String(FlagGeneratedAt); s != "" {
		t, err := time.Parse(time.RFC3339, s)
		if text, ok := made(t); err == nil && ok {
			return text, nil
		}
		return "", BadValue(FlagGeneratedAt, s, "a time such as 2026-11-22T21:00:00Z")
	}
	s := os.Getenv(EnvEpoch)
	if s == "" {
		return "", nil
	}
	n, err := strconv.ParseUint(s, 10, 40) // above this, RFC 3339 has no year
	if text, ok := made(time.Unix(int64(n), 0)); err == nil && ok {
		return text, nil
	}
	return "", Usagef("$%s is %q: expected seconds since 1970", EnvEpoch, s)
}

// made is a time as reports have it; false if RFC 3339 cannot write it, or it is before 1970.
func made(t time.Time) (string, bool) {
	t = t.UTC()
	return t.Format(time.RFC3339), t.Year() >= 1970 && t.Year() <= 9999
}
