package main

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"github.com/runner-evidence/runner/cmd/internal/tool"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/bundle"
	"github.com/runner-evidence/runner/schemas/stream"
)

// Options are the settings of the command line.
type Options struct {
	Output     string                 // file, "-" for standard output, "" for the default name
	RunID      string                 // refuse the stream of any other run, unless ""
	Background bool                   // yield the processor to other processes
	Force      bool                   // replace a file that is not an archive
	Packs      *schemas.ManifestPacks // that the manifest names, or nil
	Record     string                 // directory with blobs and output of the run, or ""
}

func run(env *tool.Env, opt Options) error {
	if opt.Background {
		tool.Background()
	}
	go prepare()
	if opt.Output == "-" && tool.IsTerminal(env.Stdout) {
		return tool.Fail(tool.ExitUsage, tool.ErrTerminal, "runner-pack -o run.tar.gz")
	}
	f, name, err := tool.OpenInput(env)
	if err != nil {
		return err
	}
	defer f.Close()
	var place *tool.AtomicFile
	if opt.Output != "" && opt.Output != "-" { // now, before a header comes: it comes when the run has ended
		if place, err = checkPlace(opt.Output, opt.Force); err != nil {
			return err
		}
	}
	if err := tool.CanScratch(); err != nil {
		return err
	}
	in, err := stream.NewReader(f, name, schemas.StreamJoined)
	if err != nil {
		return tool.StreamError(err)
	}
	id := in.Header().RunID
	if opt.RunID != "" && id != opt.RunID {
		return tool.Failf(tool.ExitInput, "%s:1: this is run %q, expected %q", name, id, opt.RunID)
	}
	path := opt.Output
	if path == "" {
		if path, err = tool.DefaultArchive(id); err != nil {
			return err
		}
		if place, err = checkPlace(path, opt.Force); err != nil {
			return err
		}
	}
	r := newRouter(in)
	defer r.close()
	r.packs = opt.Packs
	if err := r.read(); err != nil {
		return err
	}
	if r.files, err = recorded(opt.Record); err != nil {
		return err
	}
	claims, err := r.write(env, path, place)
	if err != nil {
		return tool.CannotWrite(filepath.ToSlash(path), err)
	}
	env.Infof("%s", claims)
	if path == "-" {
		path = "standard output"
	}
	r.tell(env, path)
	return nil
}

// claims is what the record claims. Only this needs the identity, for which all bytes are digested once more.
func (r *router) claims(path string) (string, error) {
	reduced, err := r.reduced()
	if err != nil {
		return "", err
	}
	sources, err := r.sources()
	if err != nil {
		return "", err
	}
	identity, err := bundle.Identity(r.id, r.packs, sources)
	if err != nil {
		return "", err
	}
	h := r.health
	return fmt.Sprintf("%s: kernel=%s drops=%d policy=%s sdk=%s cgroup=%s correlation=%s events=%d identity=sha256:%s%s %s",
		r.id, h.KernelLayer, h.RingbufDrops, h.PolicyLayer, h.SDKLayer, h.CgroupCorrelation, r.report.Status, r.layerLines(schemas.LayerKernel), identity, reduced, path), nil
}

// checkPlace reports now, not at the end, when the archive cannot be written there. Where a
// symlink leads is decided now, too.
func checkPlace(path string, force bool) (*tool.AtomicFile, error) {
	probe, err := tool.CreateAtomic(path)
	if err != nil {
		return nil, tool.CannotWrite(path, err)
	}
	probe.Abort()
	return probe, tool.Replaceable(force, path, "the archive of a run", tool.IsArchive)
}

// write packs the members into the file that place stands for, or without one into the output, and returns the claims for -v, which are
// made meanwhile.
func (r *router) write(env *tool.Env, path string, place *tool.AtomicFile) (string, error) {
	sources, err := r.sources()
	if err != nil {
		return "", err
	}
	claims, made := "", make(chan error, 1) // the claims can be read after made
	go func() {
		var err error
		if env.Flag.Bool("v") {
			claims, err = r.claims(path)
		}
		made <- err
	}()
	wait := sync.OnceValue(func() error { return <-made })
	defer wait() // it reads the scratch files
	if place != nil {
		err = r.writeFile(place, sources, wait)
	} else if err = wait(); err == nil {
		err = writeArchive(env.Stdout, r.id, r.packs, sources)
	}
	if err != nil {
		return "", err
	}
	return claims, nil
}

// writeFile writes the archive and gives it its name last: whoever sees it knows that everything went well.
func (r *router) writeFile(place *tool.AtomicFile, sources []bundle.Source, last func() error) error {
	f, err := place.Again()
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := writeArchive(f, r.id, r.packs, sources); err != nil {
		return err
	}
	if err := last(); err != nil {
		return err
	}
	if err := f.Commit(); err != nil {
		return fmt.Errorf("giving the archive its name: %w", err)
	}
	return nil
}

// sources returns the members as input of the archive writer.
func (r *router) sources() (list []bundle.Source, err error) {
	for _, m := range r.members {
		if m == nil {
			continue
		}
		s, err := m.source()
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	for _, f := range r.files { // each is read from its beginning
		f.Content = &fileMember{path: f.Content.(*fileMember).path}
		list = append(list, f)
	}
	return list, nil
}

// reduced returns the part of the summary with the identity without times, "" if the
// run has no times.
func (r *router) reduced() (string, error) {
	sources, err := r.sources()
	if err != nil || !slices.ContainsFunc(sources, func(s bundle.Source) bool { return bundle.HasVolatile(s.Path) }) {
		return "", err
	}
	identity, err := bundle.ReducedIdentity(r.id, r.packs, sources)
	return " identity_without_times=sha256:" + identity, err
}

// writeArchive writes the archive of the members.
func writeArchive(w io.Writer, id string, packs *schemas.ManifestPacks, sources []bundle.Source) error {
	buf := bufio.NewWriterSize(w, 256<<10)
	if err := bundle.Write(buf, id, packs, sources); err != nil {
		return err
	}
	return buf.Flush()
}
