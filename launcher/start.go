// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gompi/internal/control"
)

// launch starts the processes of the command line.
func (h *head) launch() error {
	var argvs [][]string
	var apps []*app
	for i := range h.o.apps {
		a := &h.o.apps[i]
		for range a.np {
			argvs, apps = append(argvs, a.argv), append(apps, a)
		}
	}
	var err error
	h.forker.do(func() { h.guard, err = startGuardian(int(h.null.Fd())) })
	if err != nil {
		return err
	}
	starts, _, err := h.server.AddJob(argvs)
	if err != nil {
		return err
	}
	w := &world{first: true}
	procs := make([]*proc, len(starts))
	for i, sp := range starts {
		procs[i] = &proc{StartProc: sp, app: apps[i], world: w, cpus: h.topo.place(h.o.bind, i, len(starts))}
	}
	if err := h.start(procs); err != nil {
		return err
	}
	if h.topo.spreads(h.o.bind, len(procs)) {
		h.letGoLater(procs)
	}
	if h.feeder != nil {
		go h.feeder.run()
	}
	return nil
}

// spawn starts processes that a process of the job asked for. The server
// calls it on a goroutine of its own.
func (h *head) spawn(starts []control.StartProc) error {
	answer := make(chan error, 1) // the head never waits
	h.post(func() {
		if h.ending || h.drained {
			answer <- control.ErrEnding
			return
		}
		w := &world{}
		procs := make([]*proc, len(starts))
		for i, sp := range starts {
			procs[i] = &proc{StartProc: sp, app: &h.o.apps[0], world: w}
		}
		err := h.start(procs)
		if err != nil {
			for _, p := range procs {
				if p.pid != 0 {
					p.discarded = true
					unix.Kill(-p.pid, unix.SIGKILL)
				} else if h.procs.byID[p.Proc] == p {
					h.procs.forget(p)
				}
			}
		}
		answer <- err
	})
	select {
	case err := <-answer:
		return err
	case <-h.ended:
	}
	select {
	case err := <-answer: // the last that the head did
		return err
	default:
		return control.ErrEnding
	}
}

// start forks the processes in order. On an error the rest is not started.
func (h *head) start(procs []*proc) error {
	specs := make([]*spec, len(procs))
	var a *app // whose environment and path these are
	var env []string
	var path string
	localSize := h.procs.locals.used + len(procs)
	for i, p := range procs {
		if p.app != a {
			a = p.app
			env = environment(os.Environ(), a.env)
			var err error
			if path, err = lookup(p.Argv[0], p.app.wdir, h.searchPath(p.app)); err != nil {
				return err
			}
		}
		h.procs.add(p)
		if !p.world.first {
			p.cpus = h.placeLater(p)
		}
		specs[i] = &spec{path: path, argv: p.Argv, dir: p.app.wdir, cpus: p.cpus.set(), bound: h.o.bind != ""}
		specs[i].env = append(env[:len(env):len(env)], h.identity(p, localSize)...)
	}
	var err error
	h.forker.do(func() {
		for i, p := range procs {
			if err = h.startOne(p, specs[i]); err != nil {
				return
			}
		}
	})
	return err
}

// placeLater is the place of a process that comes when others are there: that of
// one that has ended, else one after them all.
func (h *head) placeLater(p *proc) cpus {
	if h.o.bind == "" {
		return nil
	}
	return h.topo.place(h.o.bind, p.local, 0)
}

// startOne runs on the forking thread, while the head waits for it.
func (h *head) startOne(p *proc, s *spec) error {
	ours, err := h.streams(p, s)
	defer func() {
		for _, fd := range ours {
			unix.Close(fd)
		}
	}()
	if err != nil {
		return err
	}
	pid, pidfd, err := fork(s)
	if err != nil {
		return cannotExec(p, s.path, err)
	}
	h.procs.started(p, pid)
	if s.cpus == nil {
		p.cpus = nil
	}
	h.guard.add(pid)
	h.server.Started(p.Proc, pid)
	if h.o.verbose {
		mp := h.maxProcs(p.Size)
		h.say("%s: pid %d, cpus %s, GOMAXPROCS %s", p.name(), pid, p.cpus, orOwn(mp))
	}
	return h.watcher.add(pid, pidfd)
}

func orOwn(maxProcs int) string {
	if maxProcs == 0 {
		return "its own"
	}
	return fmt.Sprint(maxProcs)
}

// cannotExec adds names to an error of fork and gives it an exit status.
func cannotExec(p *proc, path string, err error) error {
	text := fmt.Errorf("cannot start %s: %s: %w", p.name(), path, err)
	switch se := (*startError)(nil); {
	case errors.As(err, &se):
		return &startError{se.status, text}
	case errors.Is(err, unix.ENOEXEC):
		return &startError{exitNotRunable, fmt.Errorf("%w (no program for this machine, or a script without #!)", text)}
	case errors.Is(err, fs.ErrPermission):
		return &startError{exitNotRunable, text}
	case errors.Is(err, fs.ErrNotExist):
		// The file was there: its interpreter is not.
		return &startError{exitNotRunable, fmt.Errorf("%w (its interpreter or loader is missing)", text)}
	}
	return text
}

// What a process is told of itself in its environment, besides the two
// variables by which it joins; for programs that do not, or have not yet.
// docs/running.md tells users.
const (
	envRank      = "GOMPI_RANK"
	envSize      = "GOMPI_SIZE"
	envLocalRank = "GOMPI_LOCAL_RANK"
	envLocalSize = "GOMPI_LOCAL_SIZE"
	envJob       = "GOMPI_JOB"
)

// identity is the part of p's environment that is its own.
func (h *head) identity(p *proc, localSize int) []string {
	return []string{
		control.EnvAddr + "=" + h.server.Addr(), control.EnvToken + "=" + p.Token,
		fmt.Sprintf("%s=%016x", envJob, uint64(h.job)),
		fmt.Sprintf("%s=%d", envRank, p.Rank), fmt.Sprintf("%s=%d", envSize, p.Size),
		fmt.Sprintf("%s=%d", envLocalRank, p.local), fmt.Sprintf("%s=%d", envLocalSize, localSize),
	}
}

// environment is base with the values of set in it, each name once (the first
// of two would win), and without what identity adds: base may have it from
// another gompirun.
func environment(base, set []string) []string {
	last := map[string]string{}
	for _, x := range set {
		name, _, _ := strings.Cut(x, "=")
		last[name] = x
	}
	for _, name := range [...]string{control.EnvAddr, control.EnvToken, envJob, envRank, envSize, envLocalRank, envLocalSize} {
		last[name] = ""
	}
	env := make([]string, 0, len(base)+len(set)+2)
	for _, x := range base {
		name, _, _ := strings.Cut(x, "=")
		if _, ok := last[name]; !ok {
			env = append(env, x)
		}
	}
	for _, x := range set {
		name, _, _ := strings.Cut(x, "=")
		if last[name] == x {
			env = append(env, x)
			last[name] = ""
		}
	}
	return env
}

// searchPath is the PATH that the program will see.
func (h *head) searchPath(a *app) string {
	path := os.Getenv("PATH")
	for _, x := range a.env {
		if v, ok := strings.CutPrefix(x, "PATH="); ok {
			path = v
		}
	}
	return path
}

// streams sets the standard descriptors of a process. ours are to be closed
// after the fork, also on an error.
func (h *head) streams(p *proc, s *spec) (ours []int, err error) {
	s.files = [3]int{int(h.null.Fd()), -1, -1}
	if p.world.first && (h.o.stdin == stdinAll || h.o.stdin == stdinTo(p.Rank)) {
		if h.o.stdin != stdinAll && !isTerminal(os.Stdin) {
			// Nothing is faster or more exact than the thing itself.
			s.files[0] = 0
		} else {
			if h.feeder == nil {
				h.feeder = newFeeder(os.Stdin)
			}
			fd, err := h.feeder.pipe()
			if err != nil {
				return ours, err
			}
			ours = append(ours, fd)
			s.files[0] = fd
		}
	}
	for i, name := range [2]string{"stdout", "stderr"} {
		var file *outlet
		if h.o.outputDir != "" {
			file = &outlet{name: filepath.Join(h.o.outputDir, p.outputFile(name))}
			if file.fd, err = unix.Open(file.name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_APPEND|unix.O_CLOEXEC, 0o666); err != nil {
				return ours, fmt.Errorf("%s: %w", file.name, err)
			}
		}
		src, fd, err := h.outputPipe(h.outputs[i], p, file)
		if err != nil {
			return ours, err
		}
		if i == 0 {
			p.out = src
		} else {
			p.err = src
		}
		ours = append(ours, fd)
		s.files[i+1] = fd
	}
	return ours, nil
}

func (h *head) outputPipe(to *pump, p *proc, file *outlet) (src *source, writeEnd int, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		if file != nil {
			unix.Close(file.fd)
		}
		return nil, -1, fmt.Errorf("pipe: %w", err)
	}
	unix.SetNonblock(fds[0], true)
	tag := ""
	if h.o.tag {
		tag = p.tag()
	}
	if src, err = to.add(fds[0], tag, file); err != nil {
		unix.Close(fds[1])
		return nil, -1, err
	}
	return src, fds[1], nil
}
