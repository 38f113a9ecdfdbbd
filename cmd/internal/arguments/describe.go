package arguments

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/runner-evidence/runner/schemas"
)

// Describer makes of the bytes of arguments what is recorded of them.
type Describer struct {
	Mode string // one of schemas.ArgvModes
	Key  Key
}

// Describe is what is recorded of arguments of so many bytes, of which the first were read; each has a 0 byte after it.
// Nil if nothing is.
func (d *Describer) Describe(read []byte, all uint32) *schemas.Arguments {
	if d.Mode == schemas.ArgvNone || all == 0 {
		return nil
	}
	a := &schemas.Arguments{Bytes: uint64(all)}
	whole := len(read) == int(all)
	if end := bytes.LastIndexByte(read, 0); !whole { // the last one is cut: what there is of it says nothing
		read = read[:end+1]
	}
	a.Unread = uint64(all) - uint64(len(read))
	var argv [][]byte
	for len(read) > 0 {
		one, rest, _ := bytes.Cut(read, []byte{0})
		argv = append(argv, one)
		read = rest
	}
	a.Count = uint64(len(argv))
	if len(argv) > 0 {
		name := argv[0][bytes.LastIndexByte(argv[0], '/')+1:]
		if text := Redact([][]byte{name}, d.Key)[0]; len(text) <= schemas.MaxProgramName {
			a.Name = text
		}
	}
	switch {
	case d.Mode == schemas.ArgvFull:
		a.Argv = Redact(argv, d.Key)
	case d.Key != nil:
		for _, one := range argv[:min(len(argv), schemas.MaxDigests)] {
			a.Digests = append(a.Digests, d.Key.Digest(one))
		}
	}
	return a
}

// Bounds of a key.
const minKey, maxKey = 16, 64

// ReadKey reads the key from a file: hex digits of 16 to 64 bytes. Without a file there is no key.
func ReadKey(file string) (Key, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(string(bytes.TrimSpace(b)))
	if err != nil || len(key) < minKey || len(key) > maxKey {
		return nil, fmt.Errorf("%s holds no key: expected %d to %d bytes as hex digits, made by: openssl rand -hex 32", file, minKey, maxKey)
	}
	return key, nil
}

// Fact is what is recorded of the key: its own digest, by which who has it knows that it is the one.
func (k Key) Fact() string {
	if k == nil {
		return schemas.NoKey
	}
	return schemas.DigestOf([]byte(k))
}
