package schemas

// AppendLexical appends the lexical path of user, a path text as a program gave
// it, that starts from base, a resolved directory. Empty and "." components are removed.
// Leading ".." components are applied to base, which the kernel resolved. A ".." after a
// named component is kept, because only the kernel knows whether that name is a symbolic
// link. An absolute user path starts from base too: its base is the process root.
func AppendLexical(dst, base, user []byte) []byte {
	start := len(dst)
	dst = append(dst, base...)
	for len(dst) > start && dst[len(dst)-1] == '/' {
		dst = dst[:len(dst)-1]
	}
	root := len(dst)
	if len(user) == 0 || user[0] != '/' {
		root = start
	}
	named := false
	for len(user) > 0 {
		n := 0
		for n < len(user) && user[n] != '/' {
			n++
		}
		part := user[:n]
		user = user[min(n+1, len(user)):]
		switch {
		case n == 0 || n == 1 && part[0] == '.':
		case n == 2 && part[0] == '.' && part[1] == '.' && !named:
			end := len(dst)
			for end > root {
				end--
				if dst[end] == '/' {
					break
				}
			}
			dst = dst[:end]
		default:
			named = true
			dst = append(append(dst, '/'), part...)
		}
	}
	if len(dst) == start {
		dst = append(dst, '/')
	}
	return dst
}
