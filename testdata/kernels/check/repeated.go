//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

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
	rounds := m.pick(20, 100)
	r, err := m.measure(nil, m.tool("check"), "_rounds", strconv.Itoa(rounds), m.dir(), m.tool("kinds"))
	if err != nil {
		return "", err
	}
	made, _, err := expect.Parse(r.stdout)
	if err != nil {
		return "", err
	}
	made = append(made, expect.Exec(m.tool("check")))
	for range rounds {
		made = append(made, expect.Exec(m.tool("kinds")))
	}
	detail := fmt.Sprintf("%d rounds, %d lines", rounds, len(r.lines))
	if err := r.complete(); err != nil {
		return "", told(detail + ": " + err.Error())
	}
	if res := expect.Compare(made, r.lines); !res.Same() {
		return "", errors.New(strings.Join(append(res.Problems(5), detail), "\n"))
	}
	return detail + ", each exactly as made", nil
}

// runRounds runs the groups in a new folder each time.
func runRounds(argv []string) {
	n, err := strconv.Atoi(argv[0])
	for i := 0; err == nil && i < n; i++ {
		dir := argv[1] + "/" + strconv.Itoa(i)
		if err = os.Mkdir(dir, 0o755); err != nil {
			break
		}
		fmt.Printf(`{"op":"mkdir","event_type":219,"value":%q,"ret":0,"count":1}`+"\n", dir)
		c := exec.Command(argv[2], append([]string{dir}, repeatedGroups...)...)
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
		err = c.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rounds:", err)
		os.Exit(1)
	}
}
