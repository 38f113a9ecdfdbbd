package jsonpath

import (
	"bytes"
	"encoding/json"

	"github.com/goccy/go-json/jsontext"

	"github.com/runner-evidence/runner/schemas"
)

// Decode reads one JSON value. It is as strict as the contract (no duplicate keys, valid UTF-8, nothing after the value)
// and keeps numbers as they were written, as json.Number.
func Decode(b []byte) (any, error) {
	var strict jsontext.Value
	if err := schemas.Unmarshal(b, &strict); err != nil {
		return nil, err
	}
	// The strict decoder turns numbers into floats, so a second one reads the values.
	var v any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err := d.Decode(&v)
	return v, err
}
