package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/pattern"
)

// Bounds of the kernel: no file has a longer path.
const (
	maxPath  = 4096
	maxName  = 255
	maxLinks = 40
)

// root is a directory of a rule and the place that its symlinks led to when the policy
// was read. That place is not looked up again, so that the rule does not change if the
// directory is replaced by a symlink later.
type root struct{ text, place string }

func makeRoot(p string) root {
	place, err := resolve(p)
	if err != nil {
		place = p
	}
	return root{p, place}
}

// within reports whether a place is in one of the directories.
func within(place string, roots []root) bool {
	for _, r := range roots {
		if schemas.Holds(r.text, place) || schemas.Holds(r.place, place) {
			return true
		}
	}
	return false
}

// clearPath refuses a path argument that servers may read as another path: some trim
// blanks and quotes, expand a home directory or a variable, or accept file URLs.
func clearPath(s string) error {
	switch {
	case s == "":
		return errors.New("it is empty")
	case len(s) >= maxPath:
		return fmt.Errorf("it is longer than %d bytes", maxPath-1)
	case strings.IndexByte(s, 0) >= 0:
		return errors.New("it holds a NUL byte")
	case strings.IndexFunc(s, unicode.IsControl) >= 0:
		return errors.New("it holds a control character")
	case shellList.MatchString(s):
		return errors.New("it holds {…,…} or {…..…}, of which some servers make several paths")
	case trimmed(s) != s:
		return errors.New("it begins or ends with a blank or a quote")
	case s[0] == '~' || s[0] == '$':
		return fmt.Errorf("it begins with %c, which some servers replace: write ./%c", s[0], s[0])
	}
	if i := strings.IndexByte(s, ':'); i >= 0 && schemeForm(s[:i]) && (strings.HasPrefix(s[i+1:], "/") || strings.EqualFold(s[:i], "file")) {
		return errors.New("it is a URL")
	}
	return nil
}

var shellList = pattern.New(`\{[^}]*(,|\.\.)[^}]*\}`)

// trimmed is a text without the characters that servers trim.
func trimmed(s string) string {
	return strings.TrimFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\uFEFF' || r == '"' || r == '\'' || r == '`'
	})
}

var errRelative = errors.New("it is relative, and the policy does not say to what (relative_to)")

// join makes a path absolute without cleaning it.
func join(dir, s string) (string, error) {
	if strings.HasPrefix(s, "/") {
		return s, nil
	}
	if !strings.HasPrefix(dir, "/") {
		return "", errRelative
	}
	return dir + "/" + s, nil
}

// places are all the places that a path argument may mean: the path cleaned lexically, as
// most servers do, and the place where the kernel arrives, with and without cleaning. The
// same is done for the path after percent decoding, and with backslashes as slashes.
func places(dir, s string) ([]string, error) {
	all, err := readings(s)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, reading := range all {
		if err := clearPath(reading); err != nil {
			return nil, err
		}
		whole, err := join(dir, reading)
		if err != nil {
			return nil, err
		}
		cleaned := path.Clean(whole)
		out = append(out, cleaned)
		walks := []string{cleaned, whole}
		if whole == cleaned {
			walks = walks[:1]
		}
		for _, p := range walks {
			walked, err := resolve(p)
			if err != nil {
				return nil, err
			}
			if walked != cleaned {
				out = append(out, walked)
			}
		}
	}
	return out, nil
}

// maxReadings is the largest number of ways to decode a path.
const maxReadings = 16

// readings are a path and its decoded forms: percent decoding and backslashes as slashes,
// in any order.
func readings(s string) ([]string, error) {
	all := []string{s}
	if len(s) >= maxPath || !strings.ContainsAny(s, `%\`) {
		return all, nil
	}
	for i := 0; i < len(all); i++ {
		x := all[i]
		if u, err := url.PathUnescape(x); err == nil && !slices.Contains(all, u) {
			all = append(all, u)
		}
		if u := strings.ReplaceAll(x, `\`, "/"); !slices.Contains(all, u) {
			all = append(all, u)
		}
		if len(all) > maxReadings {
			return nil, errors.New("it is encoded too many times")
		}
	}
	return all, nil
}

var (
	errLoop  = errors.New("its symlinks form a loop")
	errMagic = errors.New("a symlink in it leads to a different place in each process")
	errForm  = errors.New("a name in it exists in another Unicode form, and some servers use that file instead")
)

// resolve follows the symlinks of an absolute path as the kernel does, component by
// component. Components that do not exist stay unchanged.
func resolve(p string) (string, error) {
	if len(p) > 2*maxPath || strings.IndexByte(p, 0) >= 0 {
		return "", errors.New("it names no file")
	}
	var buf [maxPath]byte
	done, links := "", 0
	for p != "" {
		var part string
		part, p, _ = strings.Cut(strings.TrimLeft(p, "/"), "/")
		switch part {
		case "", ".":
			continue
		case "..":
			done = done[:max(strings.LastIndexByte(done, '/'), 0)]
			continue
		}
		next := done + "/" + part
		n, err := syscall.Readlink(next, buf[:])
		switch {
		case err == syscall.EINVAL: // no symlink
			done = next
			continue
		case errors.Is(err, fs.ErrNotExist) || err == syscall.ENOTDIR:
			if otherForm(done+"/", part) {
				return "", errForm
			}
			done = next
			continue
		case err != nil:
			return "", fmt.Errorf("it cannot be looked up: %w", err)
		}
		target := string(buf[:n])
		// The kernel generates the text of such links (/proc/self/root): they have no length.
		info, err := os.Lstat(next)
		if err != nil || info.Size() != int64(n) || n == len(buf) {
			return "", errMagic
		}
		if links++; links > maxLinks {
			return "", errLoop
		}
		if strings.HasPrefix(target, "/") {
			done = ""
		}
		if p = target + "/" + p; len(p) > 2*maxPath {
			return "", errLoop
		}
	}
	if done == "" {
		return "/", nil
	}
	return done, nil
}

// otherForm reports whether a directory holds a name with other code points that is the
// same text in another Unicode form. Some servers look for such a name.
func otherForm(dir, name string) bool {
	form := norm.NFC.String(name)
	if form == name && norm.NFD.IsNormalString(name) {
		return false
	}
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	for err == nil {
		var names []string
		names, err = d.Readdirnames(256)
		for _, other := range names {
			if norm.NFC.String(other) == form {
				return true
			}
		}
	}
	return false
}
