// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/launch"
	"gompi/internal/launch/spawner"
)

// How often a list of hosts is looked at, and how long a command may take to print it.
const (
	lookEvery = time.Second
	lookLimit = 30 * time.Second
	mostHosts = 1 << 20     // bytes of a list
	pipeWait  = time.Second // for the rest of what a command that has ended has printed
)

// discovery is a list of hosts that somebody else keeps.
type discovery struct {
	flag    string
	file    string // "": the command prints it
	command string
	names   []string // of the job's hosts
	every   time.Duration
	guard   *spawner.Guardian // kills the command when gompirun is killed; nil: there is none
}

// watch looks at the list again and again, and tells how many slots each of the job's
// hosts has in it, whenever that changes. A list that cannot be read, or has none of them,
// changes nothing, and is said once.
func (d *discovery) watch(slots func(hosts []int), done <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-done
		cancel()
	}()
	if d.command != "" {
		if err := d.guarded(); err != nil {
			launch.Say("%s: a command that runs when gompirun is killed will not be: %v", d.flag, err)
		} else {
			defer d.guard.Stop()
		}
	}
	last, said := []int(nil), ""
	for {
		hosts, err := d.look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != said:
			said = err.Error()
			launch.Say("%s: %s", d.flag, said)
		case err == nil && !slices.Equal(hosts, last):
			slots(hosts)
			last, said = hosts, ""
		}
		select {
		case <-time.After(d.every):
		case <-done:
			return
		}
	}
}

// guarded starts a guardian of the commands.
func (d *discovery) guarded() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	d.guard, err = spawner.StartGuardian(int(null.Fd()), 0)
	return err
}

// look is how many slots each of the job's hosts has now.
func (d *discovery) look(ctx context.Context) ([]int, error) {
	name, text, err := d.file, []byte(nil), error(nil)
	if d.file != "" {
		text, err = readList(d.file)
	} else {
		name = "what it prints"
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		text, err = printed(ctx, d.command, d.guard)
	}
	if err != nil {
		return nil, err
	}
	hs, err := parseHostfile(name, string(bytes.ToValidUTF8(text, nil)))
	if err != nil {
		return nil, err
	}
	hosts := make([]int, len(d.names))
	for _, h := range hs {
		if i := d.ours(h.name); i >= 0 {
			hosts[i] += max(1, h.slots)
		}
	}
	if total(hosts) == 0 {
		return nil, fmt.Errorf("%s has none of the job's hosts: %s", name, strings.Join(d.names, ", "))
	}
	return hosts, nil
}

// errLong: a list has more bytes than any should have; the rest is not read.
var errLong = fmt.Errorf("more than %d bytes", mostHosts)

// readBounded reads to the end of a list.
func readBounded(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostHosts+1))
	if err == nil && len(text) > mostHosts {
		err = errLong
	}
	return text, err
}

func readList(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := readBounded(f)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return text, err
}

// printed is what a command prints. Nothing of it is left then: the shell leads a group of
// processes, which is killed when it has ended, ctx has, or it has printed too much, or by
// guard (nil: there is none) when gompirun is killed.
func printed(ctx context.Context, command string, guard *spawner.Guardian) ([]byte, error) {
	// The death signal comes when the thread ends that has started the shell.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	c := exec.Command("sh", "-c", command)
	c.Stdout, c.SysProcAttr = w, &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	err = c.Start()
	w.Close()
	if err != nil {
		return nil, err
	}
	group := c.Process.Pid
	if guard != nil {
		guard.Add(group)
	}
	kill := func() { _ = unix.Kill(-group, unix.SIGKILL) } // the shell is not reaped, so its number is nobody else's
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		kill()
		_ = r.SetReadDeadline(time.Unix(1, 0)) // who has left the group may have the pipe
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for unix.Waitid(unix.P_PID, group, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		}
		kill()
		_ = r.SetReadDeadline(time.Now().Add(pipeWait))
	}()
	text, err := readBounded(r)
	if errors.Is(err, errLong) {
		kill()
	}
	<-ended
	if !stop() {
		<-killed
	}
	if guard != nil {
		guard.Remove(group)
	}
	failed := c.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the command: %w", ctx.Err())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, errors.New("the command has ended, and something that it has started has not closed its output")
	case err != nil:
		return nil, fmt.Errorf("the command prints %w", err)
	}
	return text, failed
}

// total is how many slots hosts have together.
func total(hosts []int) (n int) {
	for _, slots := range hosts {
		n += slots
	}
	return n
}

// ours is the number of a host of the job; -1: it is none.
func (d *discovery) ours(name string) int {
	if i := slices.IndexFunc(d.names, func(own string) bool { return strings.EqualFold(own, name) }); i >= 0 {
		return i
	}
	if len(d.names) == 1 && isThisHost(name) {
		return 0
	}
	return -1
}
