package bpf

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/runner-evidence/runner/schemas"
)

// rawRecord builds a record as the probes write it.
type rawRecord struct {
	op, src              int
	marks                uint32
	ret                  int64
	flags, resolve       uint64
	mode                 uint32
	imode                uint16
	u1, c1, u2, c2, addr []byte
	aux1, aux2           uint64
}

func (r rawRecord) bytes() []byte {
	b := make([]byte, recSize)
	le := binary.LittleEndian
	le.PutUint16(b[offOp:], uint16(r.op))
	b[offSrc] = byte(r.src)
	le.PutUint32(b[offTgid:], 10)
	le.PutUint32(b[offTid:], 11)
	le.PutUint64(b[offRet:], uint64(r.ret))
	le.PutUint64(b[offFlags:], r.flags)
	le.PutUint64(b[offResol:], r.resolve)
	le.PutUint32(b[offMode:], r.mode)
	le.PutUint32(b[offMarks:], r.marks)
	le.PutUint16(b[offIMode:], r.imode)
	le.PutUint16(b[offULen1:], uint16(len(r.u1)))
	le.PutUint16(b[offULen2:], uint16(len(r.u2)))
	le.PutUint16(b[offALen:], uint16(len(r.addr)))
	le.PutUint32(b[offCLen1:], uint32(len(r.c1)))
	le.PutUint32(b[offCLen2:], uint32(len(r.c2)))
	le.PutUint64(b[offAux1:], r.aux1)
	le.PutUint64(b[offAux2:], r.aux2)
	for _, part := range [][]byte{r.addr, r.u1, r.c1, r.u2, r.c2} {
		b = append(b, part...)
	}
	le.PutUint32(b, uint32(len(b)))
	return b
}

// leafFirst encodes components as the walk does.
func leafFirst(names ...string) []byte {
	var b []byte
	for i := len(names) - 1; i >= 0; i-- {
		b = append(append(b, byte(len(names[i]))), names[i]...)
	}
	return b
}

func TestDecode(t *testing.T) {
	const open = markArgs | markHasPath
	const failed = markArgs | markHasU1 | markHasBase1
	for name, c := range map[string]struct {
		rec  rawRecord
		want string // from the op key on, without the fields that all share
	}{
		"resolved": {rawRecord{op: 3, marks: open, ret: 3, flags: 0x80000, mode: 0o123, imode: 0x8000, c1: leafFirst("etc", "passwd")},
			`,"ret":3,"flags":524288,"mode":0,"path":"/etc/passwd"}`},
		"root itself": {rawRecord{op: 3, marks: open, ret: 3, imode: 0x4000},
			`,"ret":3,"flags":0,"mode":0,"path":"/"}`},
		"mode only with a creating flag": {rawRecord{op: 3, marks: open, ret: 3, flags: 0x41, mode: 0o644, imode: 0x8000, c1: leafFirst("x")},
			`,"ret":3,"flags":65,"mode":420,"path":"/x"}`},
		"bytes outside UTF-8": {rawRecord{op: 3, marks: open, imode: 0x8000, c1: leafFirst("a\xff\\\n\"")},
			`,"ret":0,"flags":0,"mode":0,"path":"/a\\xff\\\\\n\""}`},
		"mounted nowhere": {rawRecord{op: 3, marks: open | markDetached, ret: 3, imode: 0x8000, c1: leafFirst("", "etc", "shadow")},
			`,"ret":3,"flags":0,"mode":0,"path":"detached:/etc/shadow","marks":["detached"]}`},
		"top of a tree mounted nowhere": {rawRecord{op: 3, marks: failed | markDetached, ret: -2, u1: []byte("x"), c1: leafFirst("")},
			`,"ret":-2,"flags":0,"mode":0,"user_path":"x","base":"detached:/","marks":["detached"]}`},
		"dot-dot in a chroot": {rawRecord{op: 3, marks: failed | markChroot, ret: -2, u1: []byte("../x"), c1: leafFirst("jail")},
			`,"ret":-2,"flags":0,"mode":0,"user_path":"../x","base":"/jail","marks":["chroot"]}`},
		"device": {rawRecord{op: 3, marks: open, imode: 0x6000, c1: leafFirst("dev", "sda")},
			`,"ret":0,"flags":0,"mode":0,"path":"/dev/sda","file_type":"blk"}`},
		"memfd": {rawRecord{op: 3, marks: open | markDisconn | markUnnamed | markDeleted, imode: 0x8000, c1: leafFirst("memfd:x")},
			`,"ret":0,"flags":0,"mode":0,"path":"memfd:x","marks":["deleted","disconnected","unnamed"]}`},
		"pipe": {rawRecord{op: 3, marks: open | markDisconn | markUnnamed, imode: 0x1000, c1: leafFirst("")},
			`,"ret":0,"flags":0,"mode":0,"path":"pipe:","file_type":"fifo","marks":["disconnected","unnamed"]}`},
		"namespace": {rawRecord{op: 3, marks: open | markDisconn | markUnnamed, imode: modeNamespace | 0o444, c1: leafFirst("")},
			`,"ret":0,"flags":0,"mode":0,"path":"ns:","file_type":"anon","marks":["disconnected","unnamed"]}`},
		"file without a known name": {rawRecord{op: 3, marks: open | markDisconn | markUnnamed, imode: 0x8000, c1: leafFirst("")},
			`,"ret":0,"flags":0,"mode":0,"path":"unnamed:","marks":["disconnected","unnamed"]}`},
		"moved out of its bind mount": {rawRecord{op: 3, marks: open | markDisconn | markUnnamed, imode: 0x8000, c1: leafFirst("", "d", "f")},
			`,"ret":0,"flags":0,"mode":0,"path":"unreachable:/d/f","marks":["disconnected","unnamed"]}`},
		"in a directory that was": {rawRecord{op: 3, marks: failed | markDisconn, ret: -2, u1: []byte("f"), c1: leafFirst("", "d")},
			`,"ret":-2,"flags":0,"mode":0,"user_path":"f","base":"unreachable:/d","marks":["disconnected"]}`},
		"O_TMPFILE names its directory": {rawRecord{op: 3, marks: open | markDeleted, flags: 0x410002, mode: 0o600, imode: 0x8000, c1: leafFirst("tmp", "#123")},
			`,"ret":0,"flags":4259842,"mode":384,"path":"/tmp","marks":["deleted"]}`},
		"truncated path has no beginning": {rawRecord{op: 3, marks: open | markPTrunc, imode: 0x8000, c1: leafFirst("b", "c")},
			`,"ret":0,"flags":0,"mode":0,"path":"b/c","marks":["path_truncated"]}`},
		"failed, relative": {rawRecord{op: 3, marks: failed, ret: -2, u1: []byte("x"), c1: leafFirst("tmp")},
			`,"ret":-2,"flags":0,"mode":0,"user_path":"x","base":"/tmp"}`},
		"failed, chroot": {rawRecord{op: 3, marks: failed, ret: -2, u1: []byte("/x"), c1: leafFirst("jail")},
			`,"ret":-2,"flags":0,"mode":0,"user_path":"/x","base":"/jail","marks":["chroot"]}`},
		"failed, unreadable": {rawRecord{op: 3, marks: failed | markUFault, ret: -14},
			`,"ret":-14,"flags":0,"mode":0,"base":"/","marks":["user_fault"]}`},
		"restart codes are not a result": {rawRecord{op: 3, marks: failed, ret: -512, u1: []byte("/x")},
			`,"flags":0,"mode":0,"user_path":"/x","base":"/"}`},
		"rename": {rawRecord{op: number(schemas.OpRename), marks: markHasU1 | markHasBase1 | markHasU2 | markHasBase2, u1: []byte("a"), c1: leafFirst("d"), u2: []byte("/b")},
			`,"ret":0,"user_path":"a","base":"/d","user_path2":"/b","base2":"/"}`},
		"rename, both objects": {rawRecord{op: number(schemas.OpRename), marks: markHasU1 | markHasPath | markHasU2 | markHasPath2, u1: []byte("l/a"), c1: leafFirst("d", "a"), u2: []byte("../b"), c2: leafFirst("b")},
			`,"ret":0,"path":"/d/a","user_path":"l/a","path2":"/b","user_path2":"../b"}`},
		"link to a name that was not found": {rawRecord{op: number(schemas.OpLink), ret: -2, marks: markHasU1 | markHasPath | markHasU2 | markHasBase2, u1: []byte("l"), c1: leafFirst("d"), u2: []byte("no/b"), c2: leafFirst("w")},
			`,"ret":-2,"path":"/d","user_path":"l","user_path2":"no/b","base2":"/w"}`},
		"made in a directory that was removed": {rawRecord{op: number(schemas.OpMkdir), ret: -2, marks: markMode | markDeleted | markHasU1 | markHasPath, mode: 0o700, u1: []byte("x"), c1: leafFirst("gone", "x")},
			`,"ret":-2,"mode":448,"path":"/gone/x","user_path":"x","marks":["deleted"]}`},
		"exec": {rawRecord{op: opExec, marks: markHasU1 | markHasBase1 | markHasPath | markHasU2, aux1: 11, u1: []byte("/bin/ls"), c1: leafFirst("usr", "bin", "ls"), u2: []byte("/bin/ls")},
			`,"ret":0,"path":"/usr/bin/ls","user_path":"/bin/ls","base":"/"}`},
		"script from a thread": {rawRecord{op: opExec, marks: markHasU1 | markHasBase1 | markHasPath | markHasU2, aux1: 12, u1: []byte("./s"), c1: leafFirst("bin", "dash"), u2: []byte("/bin/sh"), c2: leafFirst("w")},
			`,"ret":0,"path":"/bin/dash","user_path":"./s","base":"/w","interp":"/bin/sh","old_tid":12}`},
		"ipv4": {rawRecord{op: opConnect, src: 1, ret: -111, addr: []byte{2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}},
			`,"ret":-111,"family":2,"addr":"127.0.0.1:80","source":"syscall"}`},
		"ipv6 hook": {rawRecord{op: opConnect, src: 2, marks: markNoRet, addr: append([]byte{10, 0, 1, 187, 0, 0, 0, 0}, append(make([]byte, 15), 1, 0, 0, 0, 0)...)},
			`,"family":10,"addr":"[::1]:443","source":"cgroup"}`},
		"mapped stays mapped": {rawRecord{op: opConnect + 1, src: 1, addr: append([]byte{10, 0, 0, 53, 0, 0, 0, 0}, append(make([]byte, 10), 255, 255, 1, 2, 3, 4, 0, 0, 0, 0)...)},
			`,"ret":0,"family":10,"addr":"[::ffff:1.2.3.4]:53","source":"syscall"}`},
		"unix relative": {rawRecord{op: opConnect, src: 1, marks: markHasBase1, addr: append([]byte{1, 0}, "../s\x00junk"...), c1: leafFirst("a", "b")},
			`,"ret":0,"family":1,"addr":"unix:/a/s","source":"syscall"}`},
		"unix in a chroot": {rawRecord{op: opConnect, src: 1, marks: markHasBase1, addr: append([]byte{1, 0}, "/s\x00"...), c1: leafFirst("jail")},
			`,"ret":0,"family":1,"addr":"unix:/jail/s","source":"syscall"}`},
		"unix abstract": {rawRecord{op: opConnect, src: 1, addr: []byte("\x01\x00\x00n\xfe")},
			`,"ret":0,"family":1,"addr":"unix:@n\\xfe","source":"syscall"}`},
		"netlink": {rawRecord{op: opConnect + 1, src: 1, addr: []byte{16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
			`,"ret":0,"family":16,"source":"syscall"}`},
		"refused": {rawRecord{op: opBlocked, src: 2, marks: markNoRet, aux1: 1<<32 | 3, addr: []byte{2, 0, 0, 80, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}},
			`,"family":2,"addr":"10.0.0.1:80","source":"cgroup","rule":3,"hook":"connect"}`},
		"refused by default": {rawRecord{op: opBlocked, src: 2, marks: markNoRet, aux1: 2 << 32, addr: []byte("\x01\x00\x00n")},
			`,"family":1,"addr":"unix:@n","source":"cgroup","rule":0,"hook":"send"}`},
		"refused file": {rawRecord{op: opFile, src: 4, marks: markNoRet | markHasPath, aux1: 1<<36 | 2, c1: leafFirst("etc", `x\y`)},
			`,"path":"/etc/x\\\\y","source":"lsm","rule":2,"hook":"read"}`},
		"refused move by default": {rawRecord{op: opFile, src: 4, marks: markNoRet | markHasPath, aux1: 1 << 41, c1: leafFirst("a")},
			`,"path":"/a","source":"lsm","rule":0,"hook":"move"}`},
		"refused socket": {rawRecord{op: opBlocked, src: 2, marks: markNoRet, aux1: 8<<32 | 1, addr: []byte{10, 0}},
			`,"family":10,"source":"cgroup","rule":1,"hook":"socket"}`},
		"fork": {rawRecord{op: opFork, aux1: 20<<32 | 21}, `,"child_pid":20,"child_tid":21}`},
		"fork into a namespace": {rawRecord{op: opFork, aux1: 20<<32 | 20, marks: markContext, flags: 1<<32 | 2, mode: 1, resolve: 4026532200<<32 | 9},
			`,"child_pid":20,"child_tid":20,"uid":1,"gid":2,"mount_ns":9,"ns_pid":1,"pid_ns":4026532200}`},
		"exec in a namespace, of unknown context": {rawRecord{op: opExec, marks: markHasU1 | markHasPath, aux1: 11, mode: 4, resolve: 7 << 32, u1: []byte("/x"), c1: leafFirst("x")},
			`,"ret":0,"path":"/x","user_path":"/x","ns_pid":4,"pid_ns":7}`},
		"exit": {rawRecord{op: opExit, aux2: 9}, `,"exit_code":9}`},
		"io_uring": {rawRecord{op: 6, src: 3, marks: open, ret: 5, imode: 0x8000, c1: leafFirst("x")},
			`,"ret":5,"flags":0,"mode":0,"path":"/x","marks":["io_uring"]}`},
	} {
		var d Decoder
		var e schemas.RawEvent
		if _, err := d.Decode(c.rec.bytes(), &e); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		line := e.AppendJSON(nil, "r")
		_, got, _ := bytes.Cut(line, []byte(`"cpu_seq":0,"probe":0`))
		if string(got) != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
		var back schemas.RawEvent
		if err := schemas.NewRawParser("r").Parse(line, &back); err != nil {
			t.Errorf("%s: the contract's own parser refuses the line: %v", name, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	whole := rawRecord{op: number(schemas.OpRename), marks: markHasU1 | markHasBase1 | markHasU2 | markHasBase2,
		u1: []byte("abc"), c1: leafFirst("x", "y"), u2: []byte("d"), c2: leafFirst("z")}.bytes()
	for n := range whole {
		var d Decoder
		var e schemas.RawEvent
		if _, err := d.Decode(whole[:n], &e); err == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(whole))
		}
	}
	bad := rawRecord{op: 3, marks: markHasPath, c1: []byte{5, 'a'}}.bytes()
	var d Decoder
	var e schemas.RawEvent
	if _, err := d.Decode(bad, &e); err == nil {
		t.Error("a component longer than its record was accepted")
	}
}

// For any bytes, decoding ends and stays inside them, and what it accepts is a
// line that the contract's parser accepts.
func FuzzDecode(f *testing.F) {
	f.Add(rawRecord{op: 3, marks: markHasPath | markArgs, c1: leafFirst("a", "b")}.bytes())
	f.Add(rawRecord{op: opExec, marks: markHasU1 | markHasPath | markHasU2 | markHasBase1, u1: []byte("/x"), c1: leafFirst("a"), u2: []byte("y"), c2: leafFirst("c")}.bytes())
	f.Add(rawRecord{op: opConnect, src: 1, addr: append([]byte{1, 0}, "p"...), marks: markHasBase1, c1: leafFirst("q")}.bytes())
	f.Add(rawRecord{op: opBlocked, src: 2, aux1: 4<<32 | 1<<32 - 1, addr: []byte{2, 0, 0, 80, 10, 0, 0, 1}}.bytes())
	p := schemas.NewRawParser("r")
	f.Fuzz(func(t *testing.T, b []byte) {
		var d Decoder
		var e, back schemas.RawEvent
		if _, err := d.Decode(b, &e); err != nil {
			return
		}
		line := e.AppendJSON(nil, "r")
		if err := p.Parse(line, &back); err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		if again := back.AppendJSON(nil, "r"); !bytes.Equal(again, line) {
			t.Fatalf("%s\n%s", line, again)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	rec := rawRecord{op: 3, marks: markHasPath | markArgs, imode: 0x8000, ret: 3, c1: leafFirst("home", "user", "project", "src", "main.go")}.bytes()
	var d Decoder
	var e schemas.RawEvent
	buf := make([]byte, 0, 1024)
	for b.Loop() {
		if _, err := d.Decode(rec, &e); err != nil {
			b.Fatal(err)
		}
		buf = e.AppendJSON(buf[:0], "run_0123456789")
	}
}

// number is the number of an operation in the probes.
func number(op string) int { return slices.Index(opNames[:], op) }
