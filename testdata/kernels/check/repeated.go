//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/runner-evidence/runner/testdata/workload/expect"
)

func init() { stages["_rounds"] = runRounds }

// repeatedGroups are those of the kinds in which two records of one operation must be joined.
var repeatedGroups = []string{"inet", "unix", "interrupts", "execs"}

// kindsRepeated makes some kinds of events over and over in one run, next to busy programs.
// A record that claims to be complete holds exactly what was made.
func kindsRepeated(m *machine) (string, error) {
	if err := needCapture(m); err != nil {
		return "", err
	}
	stop, err := m.busy()
	if err != nil {
		return "", err
	}
	defer stop()
	r, err := m.measure(nil, m.tool("check"), "_rounds", strconv.Itoa(m.pick(10, 40)), m.dir(), m.tool("kinds"))
	if err != nil {
		return "", err
	}
	made, _, err := expect.Parse(r.stdout)
	if err != nil {
		return "", err
	}
	made = append(made, expect.Exec(m.tool("check")))
	detail := fmt.Sprintf("%d rounds, %d lines", strings.Count(r.stdout, round), len(r.lines))
	if err := r.complete(); err != nil {
		return "", told(detail + ": " + err.Error())
	}
	if res := expect.Compare(made, r.lines); !res.Same() {
		return "", errors.New(strings.Join(append(res.Problems(5), detail), "\n"))
	}
	return detail + ", each exactly as made", nil
}

// round is the operation of the line that a round begins with.
const round = "a round's folder"

// runRounds runs the groups for some seconds, in a new folder each time.
func runRounds(argv []string) {
	seconds, err := strconv.Atoi(argv[0])
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	out := json.NewEncoder(os.Stdout)
	for i := 0; err == nil && time.Now().Before(end); i++ {
		dir := argv[1] + "/" + strconv.Itoa(i)
		if err = os.Mkdir(dir, 0o755); err != nil {
			break
		}
		out.Encode(expect.Event{Op: round, Type: 219, Value: &dir, Ret: new(int64), Count: 1})
		out.Encode(expect.Exec(argv[2]))
		c := exec.Command(argv[2], append([]string{dir}, repeatedGroups...)...)
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
		err = c.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rounds:", err)
		os.Exit(1)
	}
}
