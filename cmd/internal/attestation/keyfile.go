package attestation

import (
	"fmt"
	"io"
	"os"

	"github.com/runner-evidence/runner/cmd/internal/tool"
)

// ReadPrivate reads the private key in a file that a flag --key names. Others should not be able to read it.
func ReadPrivate(env *tool.Env, name string) (*PrivateKey, error) {
	b, err := tool.ReadFile(name, MaxKey)
	if err != nil {
		return nil, err
	}
	k, err := ParsePrivate(b)
	if err != nil {
		if _, is := ParsePublic(b); is == nil {
			return nil, tool.Fail(tool.ExitInput, fmt.Errorf("--key %s: this is a public key, expected the private one that belongs to it", name), "runner-attest --generate-key FILE writes both: FILE, and FILE.pub for those who check")
		}
		return nil, tool.Failf(tool.ExitInput, "--key %s: %w", name, err)
	}
	if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() && st.Mode().Perm()&0o077 != 0 {
		env.Warnf("others may read %s (mode %04o): chmod 600 %s", name, st.Mode().Perm(), name)
	}
	return k, nil
}

// ReadPublic reads the public keys in files that a flag --public-key names. One that is given twice counts once.
func ReadPublic(names []string) (keys []*PublicKey, err error) {
	seen := map[string]bool{}
	for _, name := range names {
		b, err := tool.ReadFile(name, MaxKey)
		if err != nil {
			return nil, err
		}
		k, err := ParsePublic(b)
		if err != nil {
			return nil, tool.Failf(tool.ExitInput, "--public-key %s: %w", name, err)
		}
		if !seen[k.String()] {
			keys = append(keys, k)
		}
		seen[k.String()] = true
	}
	return keys, nil
}

// IsFile reports whether a file has envelopes.
func IsFile(r io.Reader) bool {
	b, err := io.ReadAll(io.LimitReader(r, MaxFile))
	if err != nil {
		return false
	}
	_, err = Parse(b)
	return err == nil
}
