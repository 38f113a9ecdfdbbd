package main

import (
	"fmt"
	"io"
	"strings"
)

// manPage writes the page in the macros of man(7). The parts of the help stay as they are.
func manPage(w io.Writer, h *help) {
	fmt.Fprintf(w, ".\\\" Made by scripts/manual from %s --help.\n.TH %s 1 \"\" runner \"User commands\"\n", h.name, roff(strings.ToUpper(h.name)))
	fmt.Fprintf(w, ".SH NAME\n%s \\- %s\n", roff(h.name), roff(h.does))
	text := func(lines []string) {
		fmt.Fprintln(w, ".nf")
		for _, line := range lines {
			fmt.Fprintln(w, roff(strings.TrimPrefix(line, "  ")))
		}
		fmt.Fprintln(w, ".fi")
	}
	usage := h.section("Usage")
	n := 0 // the lines of the usage are indented; a text may follow
	for n < len(usage.lines) && (n == 0 || strings.HasPrefix(usage.lines[n], " ")) {
		n++
	}
	fmt.Fprintln(w, ".SH SYNOPSIS")
	text(usage.lines[:n])
	fmt.Fprintln(w, ".SH DESCRIPTION")
	about := append(append([]string{h.name + " " + h.does + "."}, h.more...), usage.lines[n:]...)
	fmt.Fprintln(w, roff(strings.TrimSpace(strings.Join(strings.Fields(strings.Join(about, " ")), " "))))
	for _, s := range h.sections {
		if s.title != "Usage" {
			fmt.Fprintf(w, ".SH %s\n", strings.ToUpper(s.title))
			text(trim(s.lines))
		}
	}
}

// trim leaves out empty lines at the end.
func trim(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

var roffed = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\(ga", "…", "...", "^", `\(ha`, "~", `\(ti`)

// roff is text that roff prints as it is.
func roff(s string) string {
	s = roffed.Replace(s)
	if strings.HasPrefix(s, ".") {
		return `\&` + s
	}
	return s
}

// function is a name for a shell function.
func function(name string) string { return "_" + strings.ReplaceAll(name, "-", "_") }

func bashCompletion(w io.Writer, h *help) {
	var all, files, dirs, words []string
	for _, f := range h.flags {
		all = append(all, f.long())
		switch {
		case f.file():
			files = append(files, f.long())
		case f.dir():
			dirs = append(dirs, f.long())
		case f.value != "":
			words = append(words, f.long())
		}
	}
	fmt.Fprintf(w, "# Made by scripts/manual from %s --help.\n%s() {\n", h.name, function(h.name))
	fmt.Fprint(w, "\tlocal current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} i\n")
	fmt.Fprint(w, "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n\t\tif [[ ${COMP_WORDS[i]} == -- ]]; then\n")
	fmt.Fprint(w, "\t\t\tif ((i == COMP_CWORD - 1)); then mapfile -t COMPREPLY < <(compgen -c -- \"$current\"); else mapfile -t COMPREPLY < <(compgen -f -- \"$current\"); fi\n\t\t\treturn\n\t\tfi\n\tdone\n")
	fmt.Fprint(w, "\tcase $previous in\n")
	for _, c := range []struct {
		flags []string
		do    string
	}{{files, `mapfile -t COMPREPLY < <(compgen -f -- "$current")`}, {dirs, `mapfile -t COMPREPLY < <(compgen -d -- "$current")`}, {words, "COMPREPLY=()"}} {
		if len(c.flags) > 0 {
			fmt.Fprintf(w, "\t%s) %s && return ;;\n", strings.Join(c.flags, " | "), c.do)
		}
	}
	fmt.Fprintf(w, "\tesac\n\tif [[ $current == -* ]]; then\n\t\tmapfile -t COMPREPLY < <(compgen -W '%s' -- \"$current\")\n", strings.Join(all, " "))
	fmt.Fprintf(w, "\telse\n\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n\tfi\n}\ncomplete -o filenames -F %s %s\n", function(h.name), h.name)
}

// bare leaves out what a shell would read in a quoted description.
var bare = strings.NewReplacer("'", "", `\`, "", "[", "(", "]", ")", ":", " -", "`", "", "$", "", `"`, "")

func zshCompletion(w io.Writer, h *help) {
	fmt.Fprintf(w, "#compdef %s\n# Made by scripts/manual from %s --help.\n_arguments -S \\\n", h.name, h.name)
	for _, f := range h.flags {
		action := ""
		switch {
		case f.file():
			action = ":file:_files"
		case f.dir():
			action = ":directory:_files -/"
		case f.value != "":
			action = ":" + strings.ToLower(bare.Replace(f.value)) + ": "
		}
		fmt.Fprintf(w, "  '%s[%s]%s' \\\n", f.long(), bare.Replace(f.about), action)
	}
	if strings.Contains(h.section("Usage").lines[0], " -- ") {
		fmt.Fprint(w, "  '*:: :_normal'\n")
		return
	}
	fmt.Fprint(w, "  '*:file:_files'\n")
}

func fishCompletion(w io.Writer, h *help) {
	fmt.Fprintf(w, "# Made by scripts/manual from %s --help.\n", h.name)
	for _, f := range h.flags {
		kind := "-l"
		if len(f.name) == 1 {
			kind = "-s"
		}
		fmt.Fprintf(w, "complete -c %s %s %s", h.name, kind, f.name)
		switch {
		case f.file() || f.dir():
			fmt.Fprint(w, " -r -F")
		case f.value != "":
			fmt.Fprint(w, " -x")
		}
		if f.about != "" {
			fmt.Fprintf(w, " -d '%s'", bare.Replace(f.about))
		}
		fmt.Fprintln(w)
	}
	if strings.Contains(h.section("Usage").lines[0], " -- ") {
		fmt.Fprintf(w, "complete -c %s -n 'contains -- -- (commandline -opc)' -x -a '(__fish_complete_subcommand)'\n", h.name)
	}
}
