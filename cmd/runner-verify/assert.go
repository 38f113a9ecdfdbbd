package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/itchyny/gojq"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/runner-evidence/runner/cmd/internal/jq"
	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// assertTime bounds the evaluation of one expression.
const assertTime = 5 * time.Second

// assertion is one compiled --assert.
type assertion struct {
	text string
	code *gojq.Code
}

// parseAssertions compiles expressions. They see the documents and nothing else:
// no environment, no input, no modules, no messages of their own.
func parseAssertions(texts []string) ([]assertion, error) {
	var out []assertion
	for _, text := range texts {
		code, err := jq.Compile(text)
		if err != nil {
			return nil, tool.Usagef("--assert %q: %v", text, err)
		}
		out = append(out, assertion{text, code})
	}
	return out, nil
}

// check returns why the assertion does not hold, "" when it does. Every result
// must be neither null nor false, and there must be one.
func (a assertion) check(ctx context.Context, input any) string {
	ctx, cancel := context.WithTimeout(ctx, assertTime)
	defer cancel()
	it := a.code.RunWithContext(ctx, input)
	for n := 0; ; n++ {
		v, ok := it.Next()
		if !ok {
			if n == 0 {
				return "it gives no result"
			}
			return ""
		}
		switch v := v.(type) {
		case error:
			if errors.Is(v, context.DeadlineExceeded) {
				return fmt.Sprintf("it takes longer than %s", assertTime)
			}
			return fmt.Sprintf("it fails: %v", v)
		case nil:
			return "it gives null"
		case bool:
			if !v {
				return "it gives false"
			}
		}
	}
}

// toJQ decodes one JSON value for gojq, integers exact.
func toJQ(b []byte) (any, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return exact(v), nil
}

func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return int(n)
		}
		if n, ok := new(big.Int).SetString(v.String(), 10); ok {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exact(v[k])
		}
	}
	return v
}
