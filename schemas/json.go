package schemas

import (
	json "github.com/goccy/go-json/v2"
)

// Marshal encodes a document or line in the contract's byte form: compact, in
// struct order, maps sorted, nil lists as [], only the necessary escapes, no
// final newline. Strings must be valid UTF-8.
func Marshal(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true))
}

// Unmarshal decodes strictly: exact key case, no duplicate keys, no unknown
// keys, valid UTF-8, nothing after the value. v must not be used after an error.
func Unmarshal(b []byte, v any) error {
	if err := json.Unmarshal(b, v, json.RejectUnknownMembers(true)); err != nil {
		return jsonError(err)
	}
	return nil
}

// UnmarshalOpen decodes like Unmarshal but for keys that v does not have, which it passes over: for
// documents of others, whose specification demands that.
func UnmarshalOpen(b []byte, v any) error {
	if err := json.Unmarshal(b, v); err != nil {
		return jsonError(err)
	}
	return nil
}
