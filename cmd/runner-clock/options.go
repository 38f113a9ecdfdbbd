package main

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/identity"
	"github.com/runner-evidence/runner/cmd/internal/still"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// Options is one call of runner-clock.
type Options struct {
	Clock   schemas.Clock
	Ticks   []schemas.ClockTick // to replay
	Replay  bool
	Output  string
	User    *identity.Identity
	Command []string
}

func options(env *tool.Env) (o Options, err error) {
	f := env.Flag
	o = Options{Output: f.String("o"), Replay: f.IsSet("replay"), Command: env.Args}
	if err := env.NotEmpty("seed", "start", "only", "o", "replay", "run-id", "user"); err != nil {
		return o, err
	}
	if len(o.Command) == 0 {
		return o, tool.Missing("the command", "runner-clock -- COMMAND")
	}
	id, err := env.RunID()
	if err != nil {
		return o, err
	}
	if o.Replay {
		for _, name := range []string{"seed", "start", "only", "crypto"} {
			if f.IsSet(name) {
				return o, tool.Usagef("--%s and --replay: expected one of them, as the record says what it was", name)
			}
		}
		r, err := still.Read(f.String("replay"))
		if err != nil {
			return o, err
		}
		o.Clock, o.Ticks = r.Clock, r.Ticks
	} else if o.Clock, err = settings(env); err != nil {
		return o, err
	}
	o.Clock.Schema, o.Clock.RunID, o.Clock.Bad = schemas.SchemaClock, cmp.Or(id, tool.NewRunID()), 0
	o.Clock.Lost, o.Clock.Unended = 0, 0
	if err := env.Outputs(tool.Output{Flag: "o", What: "a record of runner-clock", Ours: tool.Begins(`{"schema":"` + schemas.SchemaHeader + `","stream":"` + schemas.StreamClock + `"`)}); err != nil {
		return o, err
	}
	o.User, err = identity.Of(env)
	return o, err
}

// settings are what the flags say.
func settings(env *tool.Env) (c schemas.Clock, err error) {
	f := env.Flag
	c.Seed = f.String("seed")
	if c.Seed == "" {
		var b [8]byte
		rand.Read(b[:])
		c.Seed = strconv.FormatUint(binary.BigEndian.Uint64(b[:]), 10)
	}
	if len(c.Seed) > 256 || strings.ContainsFunc(c.Seed, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return c, tool.BadValue("seed", c.Seed, "at most 256 printable characters of ASCII, without blanks")
	}
	start := time.Now()
	if text := f.String("start"); text != "" {
		if start, err = time.Parse(time.RFC3339Nano, text); err != nil || start.Year() < 1970 || start.Year() > 2200 {
			return c, tool.BadValue("start", text, "a time between 1970 and 2200, such as 2026-01-01T00:00:00Z")
		}
	}
	c.Start = start.UTC().Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z")
	for word := range strings.SplitSeq(f.String("only"), ",") {
		if !slices.Contains(schemas.Runtimes[:], word) || slices.Contains(c.Runtimes, word) {
			return c, tool.BadValue("only", f.String("only"), strings.Join(schemas.Runtimes[:], ",")+" or one of them")
		}
		c.Runtimes = append(c.Runtimes, word)
	}
	slices.Sort(c.Runtimes)
	c.Crypto, err = env.Word("crypto", schemas.CryptoSources[:]...)
	return c, err
}
