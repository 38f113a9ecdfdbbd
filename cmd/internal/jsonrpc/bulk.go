package jsonrpc

// bulk goes on inside objects and arrays of which nothing is noted: most of a large
// answer. It takes only whole tokens and returns the index of the first that it left to
// Feed, which reads all of them: the result is the same, and comes several times as fast
// (BenchmarkBulk compares the two).
func (s *Scanner) bulk(b []byte, i int) int {
	st, depth := s.state, s.depth
	floor := depth // Feed closes the frames below this one
	for floor > 0 && s.stack[floor-1].role == roleOther {
		floor--
	}
	for i < len(b) {
		c := b[i]
		if c == ' ' || c == '\t' {
			i++
			continue
		}
		switch st {
		case stAfter:
			switch {
			case c == ',' && s.stack[depth-1].object:
				st = stKey
			case c == ',':
				st = stValue
			case (c == '}' || c == ']') && depth-1 > floor && s.stack[depth-1].object == (c == '}'):
				depth--
			default:
				goto out
			}
			i++
			continue
		case stKey, stKeyOrEnd:
			if c != '"' {
				goto out
			}
			j := wholeString(b, i+1)
			if j < 0 || j == len(b) || b[j] != ':' {
				goto out
			}
			i, st, s.key = j+1, stValue, 0
			continue
		case stValue, stValueOrEnd:
		default:
			goto out
		}
		switch {
		case c == '"':
			j := wholeString(b, i+1)
			if j < 0 {
				goto out
			}
			i, st = j, stAfter
		case c == '{' || c == '[':
			if depth == maxDepth {
				goto out
			}
			s.stack[depth] = frame{object: c == '{', role: roleOther, keys: len(s.keys)}
			depth++
			i++
			if st = stValueOrEnd; c == '{' {
				st = stKeyOrEnd
			}
		case c >= '1' && c <= '9':
			j := i + 1
			for j < len(b) && b[j]-'0' <= 9 {
				j++
			}
			if j+1 < len(b) && b[j] == '.' && b[j+1]-'0' <= 9 {
				for j += 2; j < len(b) && b[j]-'0' <= 9; j++ {
				}
			}
			if j == len(b) || b[j] != ',' && b[j] != ']' && b[j] != '}' {
				goto out
			}
			i, st = j, stAfter
		case hasPrefix(b[i:], "true"), hasPrefix(b[i:], "null"):
			i, st = i+4, stAfter
		case hasPrefix(b[i:], "false"):
			i, st = i+5, stAfter
		default:
			goto out
		}
	}
out:
	s.state, s.depth = st, depth
	return i
}

// wholeString is the index after the string whose text begins at i, or -1 if it is not
// complete or has anything except plain characters.
func wholeString(b []byte, i int) int {
	for {
		if i = plain(b, i); i == len(b) || b[i] < 0x80 && b[i] != '"' {
			return -1
		}
		if b[i] == '"' {
			return i + 1
		}
		j := runes(b, i)
		if j == i || j == len(b) {
			return -1
		}
		i = j
	}
}

func hasPrefix(b []byte, word string) bool {
	return len(b) >= len(word) && string(b[:len(word)]) == word
}
