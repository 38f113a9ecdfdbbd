package main

import (
	"regexp"
	"slices"
	"strings"
)

// flag is one flag of a tool.
type flag struct {
	name, value, about string // value is "" if it takes none
}

// In a help text a flag is one that the tool takes, except behind the name of another tool. A value
// follows after one space; a text about the flag after more, or after a value.
var (
	inHelp  = regexp.MustCompile(`(^|[\s(,;])--?([a-z][a-z0-9-]*)( [A-Za-z0-9$…|:=][A-Za-z0-9$…|:=,-]*)?`)
	ofOther = regexp.MustCompile(`(?:runner-)?(?:exec|capture|normalize|correlate|pack|verify|policy|show) --?[a-z][a-z0-9-]*`)
	short   = regexp.MustCompile(`^  -([a-z]), --[a-z][a-z0-9-]* ([A-Z]+) `)
	alone   = regexp.MustCompile(`^  (?:-[a-z], )?--?[a-z][a-z0-9-]*(?: [A-Z][A-Za-z0-9…|:=,]*)? +([^ ].*)$`)
)

// flagsIn finds the flags of a help text's part Flags, each once.
func flagsIn(lines []string) (flags []flag) {
	for _, line := range lines {
		about := ""
		if m := alone.FindStringSubmatch(line); m != nil && !inHelp.MatchString(m[1]) {
			about = m[1]
		}
		both := short.FindStringSubmatch(line) // "-o, --output FILE": one flag with two names
		if both != nil {
			flags = append(flags, flag{both[1], both[2], about})
		}
		for _, m := range inHelp.FindAllStringSubmatch(ofOther.ReplaceAllString(line, ""), -1) {
			f := flag{name: m[2], value: strings.TrimRight(strings.TrimSpace(m[3]), ",:"), about: about}
			if slices.Contains(plain, f.name) {
				f.value = ""
			}
			if both == nil {
				about = "" // of the first flag in the line
			}
			if !slices.ContainsFunc(flags, func(have flag) bool { return have.name == f.name }) {
				flags = append(flags, f)
			}
		}
	}
	slices.SortFunc(flags, func(a, b flag) int { return strings.Compare(a.name, b.name) })
	return flags
}

// plain flags may stand in a sentence: "-h, --help and --version say what they do".
var plain = []string{"help", "h", "version", "v"}

// long is the flag as it is written.
func (f flag) long() string {
	if len(f.name) == 1 {
		return "-" + f.name
	}
	return "--" + f.name
}

// file reports whether the value names a file, dir whether it names a directory.
func (f flag) file() bool { return strings.Contains(f.value, "FILE") || f.value == "PATH" }
func (f flag) dir() bool  { return f.value == "DIR" }
