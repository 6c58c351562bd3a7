// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed peer.c
var peerSource []byte

//go:embed redist.c
var redistSource []byte

// ours is the name of the implementation that is compared with the others.
const ours = "gompi"

// impl is one implementation, ready to run.
type impl struct {
	name    string // gompi, openmpi, mpich, or of --peer
	version string // for people
	bench   string // path of the benchmark program
	empty   string // path of the program that initialises and ends
	emptyIs []string
	redist  string // path of the program that redistributes; "": it was not asked for
	// launch gives the command line and additional environment for n ranks.
	launch func(transport string, n int) (argv, env []string)
}

// peer is what is needed to get, build and run a C implementation.
type peer struct {
	cc       []string // the files are appended
	run      []string // -np N and the program with its arguments are appended
	packages []string // nil: nothing can be installed
	further  bool     // of --peer: it may have a root file system of its own
}

// installed are the peers of the machine's own release. The warning that is not
// wanted is about MPICH's own header (MPI_STATUSES_IGNORE is 1).
func installed() map[string]peer {
	flags := []string{"-O2", "-Wall", "-Wno-stringop-overflow", "-pthread"}
	return map[string]peer{
		"openmpi": {
			cc: append([]string{"mpicc.openmpi"}, flags...), run: []string{"mpirun.openmpi", "--oversubscribe"},
			packages: []string{"openmpi-bin", "libopenmpi-dev"},
		},
		"mpich": {cc: append([]string{"mpicc.mpich"}, flags...), run: []string{"mpiexec.mpich"}, packages: []string{"mpich", "libmpich-dev"}},
	}
}

// parsePeer reads NAME=COMPILE,RUN.
func parsePeer(s string) (string, peer, error) {
	name, rest, _ := strings.Cut(s, "=")
	cc, run, ok := strings.Cut(rest, ",")
	p := peer{cc: strings.Fields(cc), run: strings.Fields(run), further: true}
	if !ok || name == "" || strings.ContainsAny(name, "/ |") || len(p.cc) == 0 || len(p.run) == 0 {
		return "", peer{}, fmt.Errorf("--peer %s: want NAME=COMPILE,RUN: `COMPILE IN.c OUT` compiles, `RUN -np N OUT ARG...` runs", s)
	}
	return name, p, nil
}

// withFurther are the installed peers and those of --peer.
func withFurther(further []string) (map[string]peer, []string, error) {
	all := installed()
	var names []string
	for _, s := range further {
		name, p, err := parsePeer(s)
		if err != nil {
			return nil, nil, err
		}
		if _, ok := all[name]; ok || name == ours {
			return nil, nil, fmt.Errorf("--peer %s: there is an implementation of that name", name)
		}
		all[name] = p
		names = append(names, name)
	}
	return all, names, nil
}

// prepare builds one implementation's programs into dir, or one of --peer into /tmp.
// The caller removes them, also after an error. redist: the program that redistributes,
// too.
func prepare(ctx context.Context, peers map[string]peer, name, dir string, install, redist bool) (impl, error) {
	if name == ours {
		return prepareGompi(ctx, dir)
	}
	p, ok := peers[name]
	if !ok {
		return impl{}, fmt.Errorf("no implementation %q: gompi, %s", name, strings.Join(slices.Sorted(maps.Keys(peers)), ", "))
	}
	if err := p.ensure(ctx, name, install); err != nil {
		return impl{}, err
	}
	base := filepath.Join(dir, "peer."+name)
	if p.further {
		// The one folder that every root has.
		base = filepath.Join("/tmp", filepath.Base(dir)+"."+name)
	}
	m := impl{name: name, bench: base, empty: base, emptyIs: []string{startup}, launch: p.launch}
	if redist {
		m.redist = base + ".redist"
		if err := p.compile(ctx, redistSource, filepath.Join(dir, "redist.c"), m.redist); err != nil {
			return m, err
		}
	}
	if err := p.compile(ctx, peerSource, filepath.Join(dir, "peer.c"), m.bench); err != nil {
		return m, err
	}
	return m, m.ask(ctx)
}

// compile makes a program of a source, which it writes to src.
func (p peer) compile(ctx context.Context, source []byte, src, bin string) error {
	if err := os.WriteFile(src, source, 0o600); err != nil {
		return err
	}
	files := []string{"-o", bin, src}
	if p.further {
		files = []string{src, bin}
	}
	return tool(ctx, p.cc[0], append(slices.Clone(p.cc[1:]), files...)...)
}

// remove removes the programs that prepare has built outside of its directory.
func (m impl) remove() {
	for _, path := range []string{m.bench, m.redist} {
		if path != "" {
			_ = os.Remove(path)
		}
	}
}

// launch is the command line for n ranks. An implementation hears which transport
// to take by its environment, and disregards what is meant for others.
func (p peer) launch(transport string, n int) (argv, env []string) {
	env = []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
	if transport == "tcp" {
		env = append(env, "OMPI_MCA_pml=ob1", "OMPI_MCA_btl=tcp,self", "UCX_TLS=tcp,self")
	}
	return slices.Concat(p.run, []string{"-np", strconv.Itoa(n)}), env
}

// ask runs the program once and lets the library say which it is.
func (m *impl) ask(ctx context.Context) error {
	argv, env := m.launch("shm", 1)
	out, err := runLimited(ctx, append(argv, m.bench, "version"), env, 30*time.Second)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", m.name, strings.Join(argv, " "), err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	if m.version = strings.Join(strings.Fields(line), " "); m.version == "" {
		return fmt.Errorf("%s: %s: the program has said nothing", m.name, strings.Join(argv, " "))
	}
	return nil
}

func prepareGompi(ctx context.Context, dir string) (impl, error) {
	build := []string{"build", "-o", dir + string(filepath.Separator), "gompi/cmd/gompirun", "gompi/cmd/gompibench", "gompi/bench/peers/empty"}
	if err := tool(ctx, "go", build...); err != nil {
		return impl{}, err
	}
	run := filepath.Join(dir, "gompirun")
	return impl{
		name: ours, version: ours, bench: filepath.Join(dir, "gompibench"), empty: filepath.Join(dir, "empty"),
		redist: filepath.Join(dir, "gompibench"),
		launch: func(transport string, n int) ([]string, []string) {
			return []string{run, "-np", strconv.Itoa(n)}, []string{"GOMPI_TRANSPORT=" + transport}
		},
	}, nil
}

// ensure installs what is missing, or says what to install.
func (p peer) ensure(ctx context.Context, name string, install bool) error {
	_, cerr := exec.LookPath(p.cc[0])
	_, rerr := exec.LookPath(p.run[0])
	if cerr == nil && rerr == nil {
		return nil
	}
	if p.packages == nil {
		return fmt.Errorf("--peer %s: %w", name, errors.Join(cerr, rerr))
	}
	hint := fmt.Sprintf("%s is missing: apt-get install %s (or leave it out with --only)", name, strings.Join(p.packages, " "))
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 || !install {
		return errors.New(hint)
	}
	fmt.Fprintln(os.Stderr, "peers: installing", strings.Join(p.packages, " "))
	get := append([]string{"install", "-y", "--no-install-recommends"}, p.packages...)
	if err := tool(ctx, "apt-get", get...); err != nil {
		// A fresh image has no package lists yet.
		if err := tool(ctx, "apt-get", "update"); err != nil {
			return fmt.Errorf("%s; %w", hint, err)
		}
		if err := tool(ctx, "apt-get", get...); err != nil {
			return fmt.Errorf("%s; %w", hint, err)
		}
	}
	if _, err := exec.LookPath(p.cc[0]); err != nil {
		return fmt.Errorf("installed %s, but: %w", strings.Join(p.packages, " "), err)
	}
	return nil
}

// tool runs a command and returns its output as part of the error.
func tool(ctx context.Context, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, tail(out, 2000))
	}
	return nil
}

func tail(b []byte, n int) string {
	s := strings.TrimSpace(string(b))
	if len(s) > n {
		s = "..." + s[len(s)-n:]
	}
	return s
}
