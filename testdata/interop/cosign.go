package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// predicates are what runner-attest writes, by the names of its flag.
var predicates = map[string]string{
	"measured-run":  "https://github.com/runner-evidence/runner/attestation/measured-run/v0.1",
	"runtime-trace": "https://in-toto.io/attestation/runtime-trace/v0.1",
}

// cosign verifies what runner-attest signs, of each run, and runner-verify what cosign signs.
func (c *check) cosign() error {
	cosign, err := c.command(cosignCommand, cosignVersion)
	if err != nil {
		return fmt.Errorf("cosign %s cannot be had: %w", cosignVersion, err)
	}
	n := 0
	for _, algorithm := range []string{"ed25519", "p256"} {
		key := c.file(algorithm)
		if _, err := c.tool("runner-attest", "--algorithm", algorithm, "--generate-key", key); err != nil {
			return err
		}
		for i, archive := range c.archives {
			for predicate, uri := range predicates {
				if err := c.ours(cosign, key, predicate, uri, archive, c.archives[(i+1)%len(c.archives)]); err != nil {
					return err
				}
				n += 2
			}
			if i == 2 { // each call of cosign takes a second
				break
			}
		}
	}
	fmt.Printf("interop: cosign %s verifies %d attestations of runner-attest, and none of them for another archive\n", cosignVersion, n)
	// Of a key for ed25519 cosign 3.1.3 makes Ed25519ph, which is not what DSSE says and what cosign itself refuses.
	return c.theirs(cosign, c.file("p256"))
}

// ours lets cosign verify both forms of a statement, and refuse it for another archive.
func (c *check) ours(cosign, key, predicate, uri, archive, other string) error {
	for format, flag := range map[string]string{"dsse": "--signature", "sigstore-bundle": "--bundle"} {
		file := c.file("ours.jsonl")
		if _, err := c.tool("runner-attest", "--force", "--key", key, "--predicate", predicate, "--format", format, "-o", file, archive); err != nil {
			return err
		}
		verify := []string{"verify-blob-attestation", "--key", key + ".pub", flag, file, "--type", uri, "--insecure-ignore-tlog=true"}
		if _, err := c.call(cosign, append(verify, archive)...); err != nil {
			return err
		}
		if _, err := c.call(cosign, append(verify, other)...); err == nil {
			return fmt.Errorf("cosign verifies the statement about %s for %s", archive, other)
		}
	}
	return nil
}

// theirs lets runner-verify judge what cosign signs with the predicate of runner-attest: true, and a lie.
func (c *check) theirs(cosign, key string) error {
	imported, archive := c.file("imported"), c.archives[0]
	if _, err := c.call(cosign, "import-key-pair", "--key", key, "-o", imported); err != nil {
		return err
	}
	for predicate, uri := range predicates {
		said, err := c.predicate(key, predicate, archive)
		if err != nil {
			return err
		}
		lie := strings.Replace(said, `"ringbuf_drops":0`, `"ringbuf_drops":1`, 1)
		for _, format := range []string{"--new-bundle-format=false", "--bundle=" + c.file("theirs.bundle")} {
			out, err := c.signedByCosign(cosign, imported, uri, said, format, archive)
			if err != nil || !strings.Contains(out, "attested  as "+uri+" by p256 ") {
				return fmt.Errorf("runner-verify of what cosign signed: %w\n%s", err, out)
			}
			if _, err = c.signedByCosign(cosign, imported, uri, lie, format, archive); err == nil || !strings.Contains(err.Error(), "ringbuf_drops is 1 in the statement, the archive gives 0") {
				return fmt.Errorf("runner-verify of a lie that cosign signed: %w", err)
			}
		}
	}
	fmt.Printf("interop: runner-verify takes what cosign %s signs with P-256, and refuses a lie of it with the cause\n", cosignVersion)
	return nil
}

// predicate is what runner-attest says.
func (c *check) predicate(key, predicate, archive string) (string, error) {
	line, err := c.tool("runner-attest", "--key", key, "--predicate", predicate, archive)
	if err != nil {
		return "", err
	}
	var envelope struct{ Payload []byte }
	var statement struct{ Predicate json.RawMessage }
	if err = json.Unmarshal([]byte(line), &envelope); err == nil {
		err = json.Unmarshal(envelope.Payload, &statement)
	}
	return string(statement.Predicate), err
}

// signedByCosign lets cosign sign a predicate about an archive, and returns what runner-verify says.
func (c *check) signedByCosign(cosign, key, uri, predicate, format, archive string) (string, error) {
	file, signed := c.file("predicate.json"), c.file("theirs.jsonl")
	if err := os.WriteFile(file, []byte(predicate), 0o600); err != nil {
		return "", err
	}
	out, err := c.call(cosign, "attest-blob", "--key", key+".key", "--predicate", file, "--type", uri, "--use-signing-config=false", "--tlog-upload=false", "--yes", format, archive)
	if err != nil {
		return "", err
	}
	if name, is := strings.CutPrefix(format, "--bundle="); is {
		signed = name
	} else if err := os.WriteFile(signed, []byte(out), 0o600); err != nil {
		return "", err
	}
	return c.tool("runner-verify", "--attestation", signed, "--public-key", key+".pub", archive)
}
