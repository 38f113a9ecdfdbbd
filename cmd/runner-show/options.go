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
	HTML   string // the file of --html; - is standard output
	Force  bool   // replace a file that is not a page
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
	viewHTML     = "html"
)

func options(env *tool.Env) (Options, error) {
	o := Options{Top: env.Flag.Int("top"), Width: width(env), HTML: env.Flag.String(viewHTML), Force: env.Flag.Bool("force")}
	if err := env.NotEmpty(viewHTML); err != nil {
		return o, err
	}
	for _, v := range []string{viewTree, viewList, viewJSON, viewFiltered, viewHTML} {
		if !env.Flag.Bool(v) && (v != viewHTML || o.HTML == "") {
			continue
		}
		if o.View != "" {
			return o, tool.Usagef("--%s and --%s: expected one view", o.View, v)
		}
		o.View = v
	}
	switch {
	case o.Force && o.View != viewHTML:
		return o, tool.Usagef("--force without --%s: there is no file to replace", viewHTML)
	case o.View == viewHTML && (env.Flag.IsSet("top") || env.Flag.Bool("all")):
		return o, tool.Usagef("--top and --all choose what the screen shows: the tables of a page have every operation")
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
