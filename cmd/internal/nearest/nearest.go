// Package nearest finds the word that was probably meant.
package nearest

import "strings"

// minBeginning is how much of a word says which one was meant.
const minBeginning = 3

// Word is the candidate that differs by one letter, or the only one that begins with word, or that is most like
// it, or "" if none is much like it.
func Word(word string, candidates []string) string {
	best, at := "", (len(word)+1)/4+2
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), c); d < at {
			best, at = c, d
		}
	}
	if best != "" && at <= 1 || len(word) < minBeginning {
		return best
	}
	begins := ""
	for _, c := range candidates {
		if strings.HasPrefix(c, strings.ToLower(word)) {
			if begins != "" {
				return best
			}
			begins = c
		}
	}
	if begins != "" {
		return begins
	}
	return best
}

// distance is the number of letters to add, drop or change; words over 64 bytes are
// not misspelt.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], d
		}
	}
	return row[len(b)]
}
