//go:build amd64 || arm64

package bpf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/runner-evidence/runner/bpf/internal/objects"
	"github.com/runner-evidence/runner/schemas"
)

// Options say what to watch and how.
type Options struct {
	Cgroup     string // directory of the cgroup, on a cgroup2 mount
	RingSize   int    // bytes, a power of two of at least a page
	Without    Part   // load as on a kernel that lacks these, see load_linux.go
	Supervised bool   // the parent of this process is runner-exec
	Copies     Copies // which probes have several copies, see redundant_linux.go
	Arguments  bool   // read what programs are started with
	Probes     Probes // whose probes are used
	// Rules are enforced for the sockets of the cgroup's processes. With nil, only the
	// probes are loaded. An error about the rules is a *RulesError.
	Rules *schemas.NetworkRules
	// Files are enforced for the cgroup's processes by LSM programs. ProbeLSM says whether
	// that is possible here. An error about them is a *RulesError.
	Files *schemas.FileRules
	Early *EarlyRing // a ring of RingSize that was made beforehand, or nil
}

// Session is an attached set of probes. Not safe for concurrent use.
type Session struct {
	Cgroup   string // its directory
	CgroupID uint64
	IOUring  string // "attached" or "unavailable: why"
	// IOUringForm is how this kernel reports io_uring's requests, "" where IOUring is not attached.
	IOUringForm string
	Unix        string // likewise, for the unix address hooks
	Results     string // likewise, for the results of pending connects
	// PathObjects are the functions that the objects of path operations come from, or
	// "unavailable: why".
	PathObjects string
	// Redundant is "off", "on" or "unavailable: why".
	Redundant  string
	Preemption Preemption
	Ring       *Ring
	Hooks      Period // in which the address hooks are attached

	types    *kernelBTF           // the kernel's types, decoded once for all objects
	from     objectSet            // what it is loaded from
	general  bool                 // the kernel has every part, and yet loads only what does without
	copySpec *ebpf.CollectionSpec // what copies are made from
	mu       sync.Mutex           // guards what follows while objects load at the same time
	progs    []*ebpf.Program
	links    []link.Link
	coll     []*ebpf.Collection
	shares   map[*ebpf.Map]bool // maps of coll that are there once more

	table    *ruleTable // of the network rules, nil without
	blocked  *ebpf.Map
	files    *fileSession // nil without file rules
	without  Part         // what this kernel lacks: what every object is loaded without
	reasons  []string     // of that, and of what single objects are loaded without
	requests *ebpf.Map    // of the io_uring object
	sharing  bool         // what is loaded is for several runs
	set      *probeSet    // what it shares with other runs, nil with probes of its own
	member   member       // its place there
	copies   copySet

	required  chan struct{} // closed when the required programs are attached, or failed
	observing bool          // they are attached; valid after that

	arguments                   bool
	captureTGID, supervisorTGID uint32
	guard                       guard
}

// RedundantOn is the state of a session whose probes have copies.
const RedundantOn = "on"

// required are the tracepoint programs that every session needs, in the order in which
// they are attached: first the life of tasks, last the system calls.
var required = []string{objects.KernelProgOnMove, objects.KernelProgOnFork, objects.KernelProgOnTaskExit, objects.KernelProgOnExec,
	objects.KernelProgOnDeliver, objects.KernelProgOnSysEnter, objects.KernelProgOnSysExit}

// Attach loads and attaches everything. On error nothing stays attached. If the redundant
// copies do not load, the session runs without them and Redundant says why. The events
// lost for that reason are counted as recursion misses.
func Attach(opt Options) (*Session, error) {
	if opt.Early == nil {
		opt.Early = StartRing(opt.RingSize)
		defer opt.Early.Close()
	}
	if s, err := attachShared(opt); s != nil || err != nil {
		return s, err
	}
	types := new(kernelBTF)
	go types.Kernel() // decoding takes a while: start it now, alongside the rest
	s := &Session{types: types, from: ownObjects}
	s.from.kernel, s.from.uring = readEarly(kernelObject, opt), readEarly(uringObject, opt)
	err := s.attach(opt)
	if s.refusedForm(err) {
		s = &Session{types: types, from: ownObjects, general: true}
		err = s.attach(opt)
	}
	var copies errCopies
	if errors.As(err, &copies) {
		opt.Copies = CopiesOff
		s = &Session{types: types, from: ownObjects, general: s.general}
		if err = s.attach(opt); err == nil {
			s.Redundant = state(copies.error)
		}
	}
	if err != nil {
		return nil, err
	}
	s.types, s.copySpec, s.from = nil, nil, objectSet{} // only needed to load, and tens of megabytes
	return s, nil
}

// errCopies is a failure of only the redundant copies.
type errCopies struct{ error }

func (s *Session) attach(opt Options) (err error) {
	s.Redundant, s.Preemption, s.required = schemas.RedundantOff, DetectPreemption(s.types), make(chan struct{})
	s.arguments = opt.Arguments
	s.copies = chooseCopies(opt.Copies, s.Preemption)
	var table *ruleTable
	if opt.Rules != nil {
		if table, err = compileRules(opt.Rules); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	dir, err := os.Open(opt.Cgroup)
	if err != nil {
		return err
	}
	defer dir.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return err
	}
	s.CgroupID = st.Ino
	if err := s.lacks(opt.Without); err != nil {
		return err
	}
	guard, err := s.from.guard()
	if err != nil {
		return err
	}
	if err := s.watchProcesses(guard, opt.Supervised); err != nil {
		return err
	}
	probes, err := s.read(s.from.kernel)
	if err != nil {
		return err
	}
	s.copySpec = s.copies.spec(probes)
	shared, err := s.loadMaps(probes, opt, dir)
	if err != nil {
		return err
	}
	if s.Ring, err = NewRing(shared["events"]); err != nil {
		return fmt.Errorf("opening the ring: %w", err)
	}
	// Most of the time is spent in the kernel's verifier, so everything is loaded in
	// parallel. Nothing is attached before the required programs are.
	var base, hooks, watch, files, copies error
	var copied [probeCopies]*ebpf.Collection
	var wg sync.WaitGroup
	wg.Go(func() { base = s.attachRequired(probes, shared) })
	if s.copies.any() {
		wg.Go(func() { copied, copies = s.loadCopies(shared) })
	}
	if opt.Files != nil {
		wg.Go(func() { files = s.attachFiles(shared, opt.Files) })
	}
	wg.Go(func() { watch = s.attachGuard(guard, shared) })
	wg.Go(func() { s.Results = state(s.attachResults(dir, shared)) })
	wg.Go(func() { s.IOUring = state(s.attachUring(shared)) })
	wg.Go(func() {
		names, err := s.attachObjects(shared)
		if s.PathObjects = names; err != nil {
			s.PathObjects = state(err)
		}
	})
	wg.Go(func() {
		if hooks = s.attachHooks(dir, shared); hooks == nil {
			s.Unix = state(s.attachUnix(dir, shared))
			if table != nil {
				if err := s.attachRules(dir, shared, table); err != nil {
					hooks = &RulesError{Err: err}
				}
			}
		}
	})
	wg.Wait()
	if err := cmp.Or(base, hooks, watch); err != nil {
		return err
	}
	if files != nil {
		return &RulesError{Err: files, Files: true}
	}
	if s.copies.any() {
		if copies == nil {
			copies = s.attachCopies(copied)
		}
		if copies != nil {
			return errCopies{copies}
		}
		s.Redundant = RedundantOn
	}
	if err := s.closeMaps(shared); err != nil {
		return err
	}
	return nil
}

func state(err error) string {
	if err == nil {
		return schemas.CaptureAttached
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return schemas.UnavailableBecause + text
}

// loadMaps makes the maps that all objects share.
func (s *Session) loadMaps(spec *ebpf.CollectionSpec, opt Options, dir *os.File) (map[string]*ebpf.Map, error) {
	spec = onlyMaps(spec)
	ring, err := opt.ring()
	if err != nil {
		return nil, fmt.Errorf("making the ring: %w", err)
	}
	defer ring.Close() // the object has another descriptor of it
	coll, err := s.load(spec, map[string]*ebpf.Map{objects.KernelMapEvents: ring})
	if err != nil {
		return nil, fmt.Errorf("making the maps: %w", err)
	}
	delete(s.shares, coll.Maps[objects.KernelMapEvents]) // it is this object's own
	if err := coll.Maps["scope"].Put(uint32(0), uint32(dir.Fd())); err != nil {
		return nil, fmt.Errorf("setting the scope: %w", err)
	}
	return coll.Maps, nil
}

// attachRequired loads the required programs and attaches them in their order.
// afterRequired lets the others go on then.
func (s *Session) attachRequired(spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map) error {
	defer close(s.required)
	required := s.programs()
	last := len(required) - 1 // it takes the verifier as long as all others
	var tasks, calls *ebpf.Collection
	var failed error
	var wg sync.WaitGroup
	wg.Go(func() { tasks, failed = s.loadWithBodies(spec, shared, required[:last]...) })
	calls, err := s.loadWithBodies(spec, shared, required[last])
	wg.Wait()
	if err := cmp.Or(err, failed); err != nil {
		return fmt.Errorf("loading the probes: %w", err)
	}
	for _, name := range s.attachOrder() {
		from := tasks
		if name == required[last] {
			from = calls
		}
		p := from.Programs[name]
		l, err := link.AttachTracing(link.TracingOptions{Program: p})
		if err != nil {
			return fmt.Errorf("attaching %s: %w", name, err)
		}
		s.keep(l, p)
	}
	s.observing = true
	return nil
}

// programs are those that this session requires. Those that share probes also need to know which cgroups are made.
func (s *Session) programs() []string {
	if s.sharing {
		return slices.Concat([]string{objects.KernelSharedProgOnCgroupMade, objects.KernelSharedProgOnCgroupRemoved}, required)
	}
	return slices.Clone(required)
}

// attachOrder is the order in which the required programs are attached. An entry proves the call,
// so it is looked for first. With copies a call that has an entry and no end counts as missed: then
// it comes last.
func (s *Session) attachOrder() []string {
	order := s.programs()
	if n := len(order); s.copies.calls {
		order[n-2], order[n-1] = order[n-1], order[n-2]
	}
	return order
}

// afterRequired waits until the required programs are attached. What is attached later
// must not record tasks whose life is not known.
func (s *Session) afterRequired() error {
	if s.required == nil {
		return nil // a test of one object
	}
	if <-s.required; !s.observing {
		return errors.New("the required probes are not attached")
	}
	return nil
}

func (s *Session) trace(p *ebpf.Program) error {
	if err := s.afterRequired(); err != nil {
		return err
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: p})
	if err != nil {
		return err
	}
	s.keep(l, p)
	return nil
}

func (s *Session) keep(l link.Link, p *ebpf.Program) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = append(s.links, l)
	s.progs = append(s.progs, p)
}

func (s *Session) hook(dir *os.File, p *ebpf.Program, at ebpf.AttachType) error {
	if err := s.afterRequired(); err != nil {
		return err
	}
	l, err := link.AttachCgroup(link.CgroupOptions{Path: dir.Name(), Attach: at, Program: p})
	if err != nil {
		return err
	}
	s.keep(l, p)
	return nil
}

// addressHooks are the IPv4 and IPv6 address hooks, and where each is attached.
var addressHooks = map[string]ebpf.AttachType{
	objects.SockProgOnConnect4: ebpf.AttachCGroupInet4Connect, objects.SockProgOnConnect6: ebpf.AttachCGroupInet6Connect,
	objects.SockProgOnSendmsg4: ebpf.AttachCGroupUDP4Sendmsg, objects.SockProgOnSendmsg6: ebpf.AttachCGroupUDP6Sendmsg,
}

// unixAddressHooks are those of unix sockets, and resultHook is what sees pending connects end.
var (
	unixAddressHooks = map[string]ebpf.AttachType{
		objects.UnixProgOnConnectUnix: ebpf.AttachCgroupUnixConnect, objects.UnixProgOnSendmsgUnix: ebpf.AttachCgroupUnixSendmsg,
	}
	resultHook = map[string]ebpf.AttachType{objects.ResultProgOnConnectEnd: ebpf.AttachCGroupSockOps}
)

// attachTo attaches programs to the cgroup.
func (s *Session) attachTo(dir *os.File, programs map[string]*ebpf.Program, hooks map[string]ebpf.AttachType) error {
	for _, name := range slices.Sorted(maps.Keys(hooks)) {
		if err := s.hook(dir, programs[name], hooks[name]); err != nil {
			return fmt.Errorf("attaching %s: %w", name, err)
		}
	}
	return nil
}

// attachHooks attaches the IPv4 and IPv6 address hooks. They are required, because only
// they see connections through io_uring.
func (s *Session) attachHooks(dir *os.File, shared map[string]*ebpf.Map) error {
	spec, err := s.from.sock()
	if err != nil {
		return err
	}
	coll, err := s.load(spec, shared)
	if err != nil {
		return fmt.Errorf("loading the address hooks: %w", err)
	}
	if err := s.attachTo(dir, coll.Programs, addressHooks); err != nil {
		return err
	}
	s.Hooks.from = now()
	return nil
}

// now is the clock of the records.
func now() uint64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return uint64(ts.Nano())
}

// hasUnixHooks says why this kernel has no hooks for unix sockets.
func (s *Session) hasUnixHooks() error {
	if kernel, err := s.types.Kernel(); err != nil || !enumHas(kernel, "bpf_attach_type", "BPF_CGROUP_UNIX_CONNECT") {
		return errors.Join(err, errors.New("this kernel has no hooks for addresses of unix sockets (Linux 6.7 has)"))
	}
	return nil
}

func (s *Session) attachUnix(dir *os.File, shared map[string]*ebpf.Map) error {
	if err := s.hasUnixHooks(); err != nil {
		return err
	}
	return s.loadAndAttach(dir, shared, s.from.unix, unixAddressHooks)
}

// attachResults attaches what sees pending connects end.
func (s *Session) attachResults(dir *os.File, shared map[string]*ebpf.Map) error {
	return s.loadAndAttach(dir, shared, s.from.result, resultHook)
}

func (s *Session) loadAndAttach(dir *os.File, shared map[string]*ebpf.Map, read specFunc, hooks map[string]ebpf.AttachType) error {
	spec, err := read()
	if err != nil {
		return err
	}
	coll, err := s.load(spec, shared)
	if err != nil {
		return err
	}
	return s.attachTo(dir, coll.Programs, hooks)
}

// Quiet detaches everything, hooks first and system calls last, and flushes the ring: the
// caller reads until ringbuf.ErrFlushed. The counters can still be read.
func (s *Session) Quiet() error {
	var errs []error
	s.awaitRequests()
	s.checkLinks()
	s.Hooks.to = now()
	if s.set != nil {
		errs = append(errs, s.stopMember())
	}
	for i := len(s.links) - 1; i >= 0; i-- {
		errs = append(errs, s.links[i].Close())
	}
	s.links = nil
	return errors.Join(append(errs, s.Ring.Flush())...)
}

// Close releases everything.
func (s *Session) Close() {
	for _, l := range s.links {
		l.Close()
	}
	s.links = nil
	if s.set != nil {
		s.leaveSet()
	}
	if !s.sharing {
		notAlone()
	}
	if s.Ring != nil {
		s.Ring.Close()
	}
	s.unmapPositions()
	for _, c := range s.coll {
		c.Close()
	}
	s.coll = nil
	if s.files != nil {
		s.files.close()
	}
}

// Wait is how long a read may sleep: the probes wake the reader only when an eighth of the
// ring waits. Each poll slows the measured program a little. A large ring has room
// for the records in between and is polled rarely, a small one often.
func Wait(ringSize int) time.Duration {
	if ringSize >= 4<<20 {
		return 50 * time.Millisecond
	}
	return 10 * time.Millisecond
}
