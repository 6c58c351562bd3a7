// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed peer.c
var peerSource []byte

// impl is one implementation, ready to run.
type impl struct {
	name    string // gompi, openmpi, mpich
	version string // for the table's head
	bench   string // path of the benchmark program
	empty   string // path of the program that initialises and ends
	emptyIs []string
	// launch gives the command line and additional environment for n ranks.
	launch func(transport string, n int) (argv, env []string)
}

// peer is what is needed to get and build a C implementation.
type peer struct {
	cc, run  string
	packages []string
	version  []string // command whose first line of output tells the version
}

var peers = map[string]peer{
	"openmpi": {"mpicc.openmpi", "mpirun.openmpi", []string{"openmpi-bin", "libopenmpi-dev"}, []string{"mpirun.openmpi", "--version"}},
	"mpich":   {"mpicc.mpich", "mpiexec.mpich", []string{"mpich", "libmpich-dev"}, []string{"mpichversion"}},
}

// prepare builds one implementation's programs into dir.
func prepare(ctx context.Context, name, dir string, install bool) (impl, error) {
	if name == "gompi" {
		return prepareGompi(ctx, dir)
	}
	p, ok := peers[name]
	if !ok {
		return impl{}, fmt.Errorf("no implementation %q: gompi, openmpi, mpich", name)
	}
	if err := p.ensure(ctx, name, install); err != nil {
		return impl{}, err
	}
	src, bin := filepath.Join(dir, "peer.c"), filepath.Join(dir, "peer."+name)
	if err := os.WriteFile(src, peerSource, 0o600); err != nil {
		return impl{}, err
	}
	// The warning is about MPICH's own header (MPI_STATUSES_IGNORE is 1).
	if err := tool(ctx, p.cc, "-O2", "-Wall", "-Wno-stringop-overflow", "-pthread", "-o", bin, src); err != nil {
		return impl{}, err
	}
	m := impl{name: name, version: version(ctx, p.version), bench: bin, empty: bin, emptyIs: []string{startup}}
	if name == "openmpi" {
		m.launch = launchOpenMPI
	} else {
		m.launch = launchMPICH
	}
	return m, nil
}

func prepareGompi(ctx context.Context, dir string) (impl, error) {
	build := []string{"build", "-o", dir + string(filepath.Separator), "gompi/cmd/gompirun", "gompi/cmd/gompibench", "gompi/bench/peers/empty"}
	if err := tool(ctx, "go", build...); err != nil {
		return impl{}, err
	}
	run := filepath.Join(dir, "gompirun")
	return impl{
		name: "gompi", version: "gompi", bench: filepath.Join(dir, "gompibench"), empty: filepath.Join(dir, "empty"),
		launch: func(transport string, n int) ([]string, []string) {
			return []string{run, "-np", strconv.Itoa(n)}, []string{"GOMPI_TRANSPORT=" + transport}
		},
	}, nil
}

func launchOpenMPI(transport string, n int) (argv, env []string) {
	argv = []string{"mpirun.openmpi", "--oversubscribe", "-np", strconv.Itoa(n)}
	if os.Geteuid() == 0 {
		argv = append(argv, "--allow-run-as-root")
	}
	if transport == "tcp" {
		argv = append(argv, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self")
	}
	return argv, nil
}

// launchMPICH: Debian builds device ch4:ucx, whose transports UCX chooses.
func launchMPICH(transport string, n int) (argv, env []string) {
	if transport == "tcp" {
		env = []string{"UCX_TLS=tcp,self"}
	}
	return []string{"mpiexec.mpich", "-n", strconv.Itoa(n)}, env
}

// ensure installs what is missing, or says what to install.
func (p peer) ensure(ctx context.Context, name string, install bool) error {
	_, cerr := exec.LookPath(p.cc)
	_, rerr := exec.LookPath(p.run)
	if cerr == nil && rerr == nil {
		return nil
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
	if _, err := exec.LookPath(p.cc); err != nil {
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

// version asks an implementation for its version; the answer is for people.
func version(ctx context.Context, cmd []string) string {
	out, err := exec.CommandContext(ctx, cmd[0], cmd[1:]...).Output()
	if err != nil {
		return "unknown version"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.Join(strings.Fields(line), " ")
}

func tail(b []byte, n int) string {
	s := strings.TrimSpace(string(b))
	if len(s) > n {
		s = "..." + s[len(s)-n:]
	}
	return s
}
