package rego

import (
	"fmt"
	"unicode/utf8"
)

// Bounds of a module. A decoder takes memory for what a module announces before it reads it, and code takes
// many times its size when it is compiled; what OPA compiles is far below each of them.
const (
	maxCode    = 2 << 20 // bytes of all functions
	maxFuncs   = 1 << 16
	maxLocals  = 10_000 // of a function: each call takes them
	maxEntries = 1 << 16
	maxTable   = 1 << 16
	maxParams  = 64
)

// imported is what a module wants from outside: its module, name and kind.
type imported struct {
	module, name string
	kind         byte
}

// Kinds of imports.
const (
	kindFunc   = 0
	kindTable  = 1
	kindMemory = 2
	kindGlobal = 3
)

var kindNames = map[byte]string{kindFunc: "function", kindTable: "table", kindMemory: "memory", kindGlobal: "global"}

// scanned is a module of which every size that it announces was checked, without its custom sections: they
// are names for debuggers.
type scanned struct {
	wasm    []byte
	imports []imported
	pages   uint32 // of memory that it begins with
}

// scan checks the outline of a module. It does not look at instructions.
func scan(wasm []byte) (*scanned, error) {
	if len(wasm) < 8 || string(wasm[:8]) != "\x00asm\x01\x00\x00\x00" {
		return nil, fmt.Errorf("it does not begin as a WebAssembly module of version 1")
	}
	m := &scanned{wasm: append([]byte(nil), wasm[:8]...)}
	for r := (&bin{b: wasm[8:], size: len(wasm)}); len(r.b) > 0; {
		from := r.b
		id := r.byte()
		body := &bin{b: r.bytes(r.u32()), size: len(wasm) - len(r.b)}
		if r.err != nil {
			return nil, r.err
		}
		if id == 0 {
			continue
		}
		if err := m.section(id, body); err != nil {
			return nil, err
		}
		m.wasm = append(m.wasm, from[:len(from)-len(r.b)]...)
	}
	return m, nil
}

// sections are the readers of one entry of the sections that are lists, by their number.
var sections = map[byte]struct {
	name  string
	most  uint32
	entry func(*scanned, *bin)
}{
	1:  {"type", maxEntries, func(_ *scanned, r *bin) { r.want(0x60, "a function type"); r.params(); r.params() }},
	2:  {"import", maxEntries, (*scanned).imported},
	3:  {"function", maxFuncs, func(_ *scanned, r *bin) { r.u32() }},
	4:  {"table", 1, func(_ *scanned, r *bin) { r.table() }},
	6:  {"global", maxEntries, func(_ *scanned, r *bin) { r.bytes(2); r.constant() }},
	7:  {"export", maxEntries, func(_ *scanned, r *bin) { r.name(); r.byte(); r.u32() }},
	9:  {"element", maxEntries, func(_ *scanned, r *bin) { r.element() }},
	10: {"code", maxFuncs, func(_ *scanned, r *bin) { r.function() }},
	11: {"data", maxEntries, func(_ *scanned, r *bin) { r.data() }},
}

func (m *scanned) section(id byte, r *bin) error {
	switch id {
	case 5:
		if r.u32() != 0 && r.err == nil {
			return fmt.Errorf("it has a memory of its own, expected the import env.memory")
		}
	case 8, 12: // the start function, the number of data segments
		r.u32()
	default:
		s, known := sections[id]
		if !known {
			return fmt.Errorf("section %d is not known", id)
		}
		if id == 10 && len(r.b) > maxCode {
			return fmt.Errorf("%d bytes of code, expected at most %d", len(r.b), maxCode)
		}
		n := r.u32()
		if n > s.most {
			return fmt.Errorf("section %s: %d entries, expected at most %d", s.name, n, s.most)
		}
		for range n {
			if s.entry(m, r); r.err != nil {
				return fmt.Errorf("section %s: %w", s.name, r.err)
			}
		}
	}
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes after the end of section %d", len(r.b), id)
	}
	return r.err
}

// imported reads an import. Tables and globals end the reading: they are refused by their names.
func (m *scanned) imported(r *bin) {
	i := imported{module: r.name(), name: r.name(), kind: r.byte()}
	switch i.kind {
	case kindFunc:
		r.u32()
	case kindTable:
		r.table()
	case kindMemory:
		m.pages = r.limits()
	case kindGlobal:
		r.bytes(2)
	default:
		r.fail("an import of kind %d", i.kind)
	}
	m.imports = append(m.imports, i)
}

// bin reads the binary form. After the first error it reads nothing more.
type bin struct {
	b    []byte
	size int // of all until the end of b
	err  error
}

func (r *bin) fail(format string, a ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d: "+format, append([]any{r.size - len(r.b)}, a...)...)
	}
	r.b = nil
}

func (r *bin) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)) {
		r.fail("%d bytes are announced, there are %d", n, len(r.b))
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *bin) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *bin) want(c byte, what string) {
	if b := r.byte(); b != c {
		r.fail("0x%02x, expected %s", b, what)
	}
}

// leb reads an integer of at most this many bytes in LEB128, of which only the length matters here.
func (r *bin) leb(most int) (n uint64) {
	for i := range most {
		b := r.byte()
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return n
		}
	}
	r.fail("a number of more than %d bytes", most)
	return 0
}

func (r *bin) u32() uint32 {
	n := r.leb(5)
	if n > 1<<32-1 {
		r.fail("the number %d, expected at most 32 bits", n)
	}
	return uint32(n)
}

func (r *bin) name() string {
	b := r.bytes(r.u32())
	if !utf8.Valid(b) {
		r.fail("a name that is not UTF-8")
	}
	return string(b)
}

func (r *bin) params() {
	n := r.u32()
	if n > maxParams {
		r.fail("%d parameters or results, expected at most %d", n, maxParams)
	}
	r.bytes(n)
}

func (r *bin) limits() (least uint32) {
	flags := r.byte()
	if flags > 1 {
		r.fail("limits of kind %d, expected 0 or 1", flags)
	}
	least = r.u32()
	if flags == 1 {
		r.u32()
	}
	return least
}

func (r *bin) table() {
	r.want(0x70, "a table of functions")
	if n := r.limits(); n > maxTable {
		r.fail("a table of %d functions, expected at most %d", n, maxTable)
	}
}

// constant reads the expression of a constant.
func (r *bin) constant() {
	switch op := r.byte(); op {
	case 0x41: // i32.const
		r.leb(5)
	case 0x42: // i64.const
		r.leb(10)
	case 0x43: // f32.const
		r.bytes(4)
	case 0x44: // f64.const
		r.bytes(8)
	default:
		r.fail("instruction 0x%02x, expected a constant", op)
	}
	r.want(0x0b, "the end of a constant")
}

func (r *bin) element() {
	r.want(0, "an element segment of kind 0")
	r.constant()
	n := r.u32()
	if n > maxTable {
		r.fail("%d elements, expected at most %d", n, maxTable)
		return
	}
	for range n {
		r.u32()
	}
}

func (r *bin) data() {
	r.want(0, "a data segment of kind 0")
	r.constant()
	r.bytes(r.u32())
}

// function reads the code of one function.
func (r *bin) function() {
	code := &bin{b: r.bytes(r.u32()), size: r.size - len(r.b)}
	var locals uint64
	for range code.u32() {
		locals += uint64(code.u32())
		if code.byte(); code.err != nil {
			break
		}
	}
	if locals > maxLocals {
		code.fail("a function with %d variables, expected at most %d", locals, maxLocals)
	}
	if r.err == nil && code.err != nil {
		r.err, r.b = code.err, nil
	}
}
