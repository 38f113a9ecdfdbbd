// Manual reads the help of a tool on standard input and writes its manual page or its
// completion for a shell. So all of them say what the tool itself says.
//
//	bin/runner-exec --help | go run ./scripts/manual man|bash|zsh|fish runner-exec
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "manual: error:", err)
		os.Exit(2)
	}
}

// writers are the forms that can be made.
var writers = map[string]func(io.Writer, *help){"man": manPage, "bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 || writers[args[0]] == nil {
		return fmt.Errorf("manual man|bash|zsh|fish TOOL < HELP")
	}
	b, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	h, err := parse(args[1], string(b))
	if err != nil {
		return err
	}
	writers[args[0]](out, h)
	return nil
}

// section is a part of a help text: a title, and the lines below it.
type section struct {
	title string
	lines []string
}

// help is a parsed help text.
type help struct {
	name, does string // "runner-pack", "writes the archive of one run"
	more       []string
	sections   []section
	flags      []flag
}

// parse reads a help text: "NAME does this." and more sentences, then parts with titles.
func parse(name, text string) (*help, error) {
	h := &help{name: name}
	first, rest, _ := strings.Cut(text, "\n")
	does, ok := strings.CutPrefix(first, name+" ")
	if !ok {
		return nil, fmt.Errorf("the help does not begin with %q", name+" ")
	}
	h.does = strings.TrimSuffix(does, ".")
	lines := &h.more
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(line, "\n")
		if title, body, ok := titled(line); ok {
			h.sections = append(h.sections, section{title: title})
			lines = &h.sections[len(h.sections)-1].lines
			if body != "" {
				*lines = append(*lines, body)
			}
			continue
		}
		*lines = append(*lines, line)
	}
	for _, title := range []string{"Usage", "Flags", "Exit codes", "Examples"} {
		if h.section(title) == nil {
			return nil, fmt.Errorf("the help has no part %q", title)
		}
	}
	h.flags = flagsIn(h.section("Flags").lines)
	return h, nil
}

// titled splits a line that begins a part: "Flags:", or "Exit codes: the server's own".
func titled(line string) (title, body string, ok bool) {
	title, body, ok = strings.Cut(line, ":")
	if !ok || title == "" || title[0] < 'A' || title[0] > 'Z' || strings.Count(title, " ") > 1 || strings.Contains(title, ",") {
		return "", "", false
	}
	return title, strings.TrimSpace(body), true
}

func (h *help) section(title string) *section {
	for i := range h.sections {
		if h.sections[i].title == title {
			return &h.sections[i]
		}
	}
	return nil
}
