package main

import (
	"math"
	"os"
	"strconv"

	"golang.org/x/term"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// Values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

const (
	defaultTop   = 6
	defaultWidth = 80 // columns, where the output is not a terminal
)

// Options are the command line's choices.
type Options struct {
	View   string // "" or one of the views
	Filter filter
	Top    int
	Color  bool
	Width  int // columns; 0 is no limit
}

// Views.
const (
	viewTree     = "tree"
	viewList     = "list"
	viewJSON     = "json"
	viewFiltered = "filtered"
)

func options(env *tool.Env) (Options, error) {
	o := Options{Top: env.Flag.Int("top"), Width: width(env)}
	for _, v := range []string{viewTree, viewList, viewJSON, viewFiltered} {
		if !env.Flag.Bool(v) {
			continue
		}
		if o.View != "" {
			return o, tool.Usagef("--%s and --%s: expected one view", o.View, v)
		}
		o.View = v
	}
	if o.Top < 1 {
		return o, tool.BadValue("top", strconv.Itoa(o.Top), "a number of 1 or more")
	}
	if env.Flag.Bool("all") {
		if env.Flag.IsSet("top") {
			return o, tool.Usagef("--top and --all: expected one of them")
		}
		o.Top, o.Width = math.MaxInt, 0
	}
	color, err := env.Word("color", colorAuto, colorAlways, colorNever)
	if err != nil {
		return o, err
	}
	o.Color = color == colorAlways || color == colorAuto && tool.IsTerminal(env.Stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if o.Filter, err = newFilter(env); err == nil && o.View == viewFiltered && !o.Filter.empty() {
		err = tool.Usagef("--%s with %s: what was left out has no operation, process or outcome", viewFiltered, o.Filter.words[0])
	}
	return o, err
}

// width is that of the terminal.
func width(env *tool.Env) int {
	if f, ok := env.Stdout.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns >= 40 {
			return columns
		}
	}
	return defaultWidth
}
