package jsonrpc

import "github.com/runner-evidence/runner/schemas"

// number goes on in a number and returns the index of the first byte that it left.
func (s *Scanner) number(b []byte, i int) int {
	for ; i < len(b); i++ {
		if s.state == stInt || s.state == stFrac || s.state == stExpInt {
			from := i
			for i < len(b) && b[i]-'0' <= 9 {
				i++
			}
			s.take(b[from:i])
			if i == len(b) {
				break
			}
		}
		c := b[i]
		digit := c >= '0' && c <= '9'
		next := s.state
		switch s.state {
		case stMinus:
			switch {
			case c == '0':
				next = stZero
			case digit:
				next = stInt
			default:
				s.fail(schemas.ReasonBadJSON)
				return i
			}
		case stZero, stInt:
			switch {
			case digit && s.state == stInt:
			case c == '.':
				next = stPoint
			case c == 'e' || c == 'E':
				next = stExp
			default:
				s.endScalar(s.base + i)
				return i
			}
		case stPoint, stFrac:
			switch {
			case digit:
				next = stFrac
			case s.state == stPoint:
				s.fail(schemas.ReasonBadJSON)
				return i
			case c == 'e' || c == 'E':
				next = stExp
			default:
				s.endScalar(s.base + i)
				return i
			}
		case stExp:
			switch {
			case digit:
				next = stExpInt
			case c == '+' || c == '-':
				next = stExpSign
			default:
				s.fail(schemas.ReasonBadJSON)
				return i
			}
		case stExpSign, stExpInt:
			switch {
			case digit:
				next = stExpInt
			case s.state == stExpInt:
				s.endScalar(s.base + i)
				return i
			default:
				s.fail(schemas.ReasonBadJSON)
				return i
			}
		}
		s.state = next
		s.take1(c)
	}
	return i
}
