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

// Limits of a list of hosts.
const (
	readEvery      = time.Second      // interval between reads
	commandTimeout = 30 * time.Second // for a command to print it
	maxListBytes   = 1 << 20
	pipeWait       = time.Second // for the rest of the output of a command that has ended
)

// discovery is a list of hosts in a file, or printed by a command.
type discovery struct {
	flag    string
	file    string // "": command prints the list
	command string
	names   []string // names of the job's hosts
	every   time.Duration
	guard   *spawner.Guardian // kills the command if gompirun is killed; may be nil
}

// watch reads the list regularly, and calls slots with the slots of each host of the job
// whenever they change. A list that cannot be read, or that has none of these hosts,
// changes nothing; one line is printed about it.
func (d *discovery) watch(slots func(hosts []int), done <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-done
		cancel()
	}()
	if d.command != "" {
		if err := d.startGuard(); err != nil {
			launch.Say("%s: a command that runs when gompirun is killed will not be: %v", d.flag, err)
		} else {
			defer d.guard.Stop()
		}
	}
	last, said := []int(nil), ""
	for {
		hosts, err := d.read(ctx)
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

// startGuard starts a guardian for the commands.
func (d *discovery) startGuard() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	d.guard, err = spawner.StartGuardian(int(null.Fd()), 0)
	return err
}

// read returns the slots of each host of the job.
func (d *discovery) read(ctx context.Context) ([]int, error) {
	name, text, err := d.file, []byte(nil), error(nil)
	if d.file != "" {
		text, err = readList(d.file)
	} else {
		name = "what it prints"
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		text, err = runCommand(ctx, d.command, d.guard)
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
		if i := d.hostIndex(h.name); i >= 0 {
			hosts[i] += max(1, h.slots)
		}
	}
	if total(hosts) == 0 {
		return nil, fmt.Errorf("%s has none of the job's hosts: %s", name, strings.Join(d.names, ", "))
	}
	return hosts, nil
}

// errLong is the error of a list that is too long; the rest is not read.
var errLong = fmt.Errorf("more than %d bytes", maxListBytes)

// readBounded reads a list to its end.
func readBounded(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxListBytes+1))
	if err == nil && len(text) > maxListBytes {
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

// runCommand returns the output of a command, and leaves no process of it behind. The
// shell leads a process group. The group is killed when the shell ends, when ctx ends,
// when the output is too long, or by guard, which may be nil, when gompirun is killed.
func runCommand(ctx context.Context, command string, guard *spawner.Guardian) ([]byte, error) {
	// The death signal is sent when the thread ends that has started the shell.
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
	kill := func() { _ = unix.Kill(-group, unix.SIGKILL) } // the shell is not reaped, so no other process has its number
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		kill()
		_ = r.SetReadDeadline(time.Unix(1, 0)) // a process that left the group may have the pipe
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

// total returns the sum of the slots.
func total(hosts []int) (n int) {
	for _, slots := range hosts {
		n += slots
	}
	return n
}

// hostIndex returns the index of a host of the job, or -1.
func (d *discovery) hostIndex(name string) int {
	if i := slices.IndexFunc(d.names, func(own string) bool { return strings.EqualFold(own, name) }); i >= 0 {
		return i
	}
	if len(d.names) == 1 && isThisHost(name) {
		return 0
	}
	return -1
}
