package noise

import "bytes"

// needle is a text that is looked for in paths: nearly every path is asked for it, and few have it. So only the places of
// its rarest byte are looked at: a slash is in every path, and most letters are in many.
type needle struct {
	text []byte
	at   int // of the rarest byte
}

// common are bytes of paths, the most common first. A byte that is not there is rarer than all of them.
const common = "/etaoinsrlcdpmuhgb.1_2-30456789fyvwkxqjz"

func newNeedle(text string) needle {
	n := needle{text: []byte(text)}
	rarity := func(c byte) int {
		if i := bytes.IndexByte([]byte(common), c); i >= 0 {
			return i
		}
		return len(common)
	}
	for i := range n.text {
		if rarity(n.text[i]) > rarity(n.text[n.at]) {
			n.at = i
		}
	}
	return n
}

// in reports whether a path contains the text.
func (n *needle) in(path []byte) bool {
	for from := n.at; from < len(path); {
		i := bytes.IndexByte(path[from:], n.text[n.at])
		if i < 0 {
			return false
		}
		if from += i; bytes.HasPrefix(path[from-n.at:], n.text) {
			return true
		}
		from++
	}
	return false
}
