package policy

import (
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/runner-evidence/runner/cmd/internal/strict"
)

// Rate is how many calls of one tool a rule allows in a time.
type Rate struct {
	Calls int
	Per   time.Duration
}

const maxRate = 10000

var periods = map[string]time.Duration{"second": time.Second, "minute": time.Minute, "hour": time.Hour}

// rate reads N/second, N/minute or N/hour.
func (r *reader) rate(n *yaml.Node) Rate {
	s, ok := r.Text(n, "rate")
	if !ok {
		return Rate{}
	}
	calls, period, _ := strings.Cut(s, "/")
	count, err := strconv.Atoi(calls)
	if err != nil || count < 1 || count > maxRate || strconv.Itoa(count) != calls || periods[period] == 0 {
		r.Bad(n, "rate is "+strict.Quote(s), "1 to 10000 calls of each tool in a time: N/second, N/minute or N/hour", "")
		return Rate{}
	}
	return Rate{count, periods[period]}
}

func (r Rate) String() string {
	for name, per := range periods {
		if per == r.Per {
			return strconv.Itoa(r.Calls) + "/" + name
		}
	}
	return ""
}
