package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// twoBoxes are two pid namespaces in which everybody has the same numbers.
const twoBoxes = `
0 10 1-
	2 exec /bin/runner-exec
1 20 10- 700:2
	11 exec /bin/runner-policy
2 30 20- 700:9
	21 exec /bin/server
	110 read /work/a
1 40 10- 800:2
	11 exec /bin/runner-policy
2 50 20- 800:9
	21 exec /bin/server
	110 write /work/b
`

const twoSessions = `
session S 2 9 25 @700
session T 2 9 25 @800
allow S 0 tc_1 read_file 100-200 completed /work/a
allow T 0 tc_2 write_file 100-200 completed /work/b
end S
end T`

const (
	ofS   = "tc_1 allow 1 tool_server own [read /work/a]"
	ofT   = "tc_2 allow 1 tool_server own [write /work/b]"
	ofAll = "tc_1 allow 2 run own [read /work/a, write /work/b]"
)

// TestSessionsInSpaces: a server is found by its number in the namespace that the log names, and by nothing else.
func TestSessionsInSpaces(t *testing.T) {
	onlyS := "session S 2 9 25 @700\nallow S 0 tc_1 read_file 100-200 completed /work/a\nend S"
	for name, c := range map[string]struct {
		kernel, policy, want string
		unknown              bool
	}{
		"equal numbers": {twoBoxes, twoSessions, ofS + "\n" + ofT, false},
		"used again by the next process, in a namespace with the same inode": {`
0 10 1-
	2 exec /bin/runner-exec
1 20 10-90 700:2
	11 exec /bin/runner-policy
2 30 20-80 700:9
	21 exec /bin/server
	50 read /work/a
1 40 100- 700:2
	101 exec /bin/runner-policy
2 50 110- 700:9
	111 exec /bin/server
	150 write /work/b
`, `
session S 2 9 25 @700
session T 2 9 125 @700
allow S 0 tc_1 read_file 40-60 completed /work/a
allow T 0 tc_2 write_file 140-160 completed /work/b
end S
end T`, ofS + "\n" + ofT, false},
		"the initial namespace, by its inode":               {twoBoxes, strings.Replace(onlyS, "2 9 25 @700", "20 30 25 @4026531836", 1), ofS, false},
		"nobody says where":                                 {twoBoxes, strings.Replace(onlyS, " @700", "", 1), ofAll, true},
		"a namespace that is not there":                     {twoBoxes, strings.Replace(onlyS, "@700", "@900", 1), ofAll, true},
		"a server of another namespace":                     {strings.Replace(twoBoxes, "30 20- 700:9", "30 20- 900:9", 1), onlyS, ofAll, true},
		"a proxy of another namespace":                      {strings.Replace(twoBoxes, "20 10- 700:2", "20 10- 900:2", 1), onlyS, ofAll, true},
		"numbers of the initial namespace with another one": {twoBoxes, strings.Replace(onlyS, "2 9 25", "20 30 25", 1), ofAll, true},
		"a kernel that told no numbers":                     {strings.NewReplacer(" 700:2", "", " 700:9", "", " 800:2", "", " 800:9", "").Replace(twoBoxes), onlyS, ofAll, true},
	} {
		t.Run(name, func(t *testing.T) {
			j := world{kernel: c.kernel, policy: c.policy}.run(t)
			codes := strings.Split(j.codes(), "\n")
			if unknown := slices.Contains(codes, "tool_server_unknown:srv-S"); unknown != c.unknown || unknown != (j.report.Status == schemas.CorrelationPartial) {
				t.Errorf("%s %q", j.report.Status, codes)
			}
			if got := j.bindings(); got != c.want {
				t.Errorf("bindings\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
