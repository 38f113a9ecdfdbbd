package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
)

// dropTime bounds how long the program may think about one line.
const dropTime = 2 * time.Second

const maxProgram = 64 << 10

// dropper asks the user's program about every line. Lines never pass through it:
// it only answers yes or no.
type dropper struct {
	text string
	code *gojq.Code
	n    uint64
}

func compileDrop(text string) (*dropper, error) {
	if !utf8.ValidString(text) || len(text) > maxProgram {
		return nil, tool.Usagef("--drop: expected a program in UTF-8 of at most %d bytes", maxProgram)
	}
	code, err := jq.Compile(text)
	if err != nil {
		return nil, tool.Usagef("--drop: %v in %s", err, safe([]byte(text)))
	}
	return &dropper{text: text, code: code}, nil
}

// drops asks about one whole line. An answer that is not true or false is an
// error: a program that is wrong about a line must not quietly keep it.
func (d *dropper) drops(ctx context.Context, line []byte) (bool, error) {
	dec := json.NewDecoder(strings.NewReader(string(line)))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil {
		return false, fmt.Errorf("decoding a line for --drop: %w", err)
	}
	for k, v := range object {
		if n, ok := v.(json.Number); ok {
			object[k] = exactNumber(n)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dropTime)
	defer cancel()
	it := d.code.RunWithContext(ctx, object)
	answer, ok := it.Next()
	if !ok {
		return false, d.wrong(line, "no answer")
	}
	if err, ok := answer.(error); ok {
		return false, d.wrong(line, err.Error())
	}
	yes, ok := answer.(bool)
	if !ok {
		return false, d.wrong(line, "the answer is not true or false but "+gojq.TypeOf(answer))
	}
	if again, ok := it.Next(); ok {
		if err, ok := again.(error); ok {
			return false, d.wrong(line, err.Error())
		}
		return false, d.wrong(line, "more than one answer")
	}
	if yes {
		d.n++
	}
	return yes, nil
}

// exactNumber keeps every digit: gojq computes with int and big.Int.
func exactNumber(n json.Number) any {
	if i, err := strconv.Atoi(n.String()); err == nil {
		return i
	}
	i, _ := new(big.Int).SetString(n.String(), 10)
	return i
}

func (d *dropper) wrong(line []byte, what string) error {
	return tool.Fail(tool.ExitUsage, fmt.Errorf("--drop: %s for the line %s", safe([]byte(what)), safe(line)),
		"the program must answer true (drop) or false (keep) for every line")
}

// note declares the program in the health notes.
func (d *dropper) note() string {
	return schemas.NoteDrop.Format(d.text, schemas.DropDigest(d.text), d.n)
}
