package tool

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// What was given is what the library says, whichever name it was given by.
func TestIsSet(t *testing.T) {
	flags := []cli.Flag{&cli.StringFlag{Name: "output", Aliases: []string{"o"}}, &cli.StringFlag{Name: "name", Value: "n"},
		&cli.BoolFlag{Name: "q"}, &cli.StringSliceFlag{Name: "list"}}
	for _, call := range []string{"", "-o=x", "--output=x", "--output=", "--name=n", "-q", "-q=false", "--list=a --list=b", "--list=a -q -o=x"} {
		ran := false
		a := App{Name: "tool", Flags: flags, Run: func(_ context.Context, env *Env) error {
			ran = true
			for _, name := range []string{"output", "o", "name", "q", "list", "help", "version", "other"} {
				if got, want := env.Flag.IsSet(name), env.Flag.Context.IsSet(name); got != want {
					t.Errorf("%q: %s is set: %t, expected %t", call, name, got, want)
				}
			}
			return nil
		}}
		if code := a.Call(context.Background(), strings.NewReader(""), io.Discard, io.Discard, strings.Fields(call)); code != ExitOK || !ran {
			t.Errorf("%q: exit code %d", call, code)
		}
	}
}
