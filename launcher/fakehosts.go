// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// fakeHostsFlag is a hidden flag for tests with the value HxS: the job has H hosts of S
// slots, each with an agent in a process of its own on this host. Ranks of different fake
// hosts share no memory.
const fakeHostsFlag = "pretend-hosts"

// maxFakeHosts bounds the hosts, and the slots of each.
const maxFakeHosts = 1000

// setFakeHosts parses the flag.
func (v *flagValues) setFakeHosts(o *options) error {
	if v.pretend == "" {
		return nil
	}
	hosts, slots, _ := strings.Cut(v.pretend, "x")
	h, err := strconv.Atoi(hosts)
	s, err2 := strconv.Atoi(slots)
	if err != nil || err2 != nil || h < 1 || s < 1 || h > maxFakeHosts || s > maxFakeHosts {
		return usagef("--%s %s: want HOSTSxSLOTS", fakeHostsFlag, v.pretend)
	}
	o.fakeHosts = make([]int, h)
	for i := range o.fakeHosts {
		o.fakeHosts[i] = s
	}
	return nil
}

// startFakeHost starts an agent as another process of this host. It ends when its
// connection does.
func startFakeHost(uint32) (net.Conn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "agent"), os.NewFile(uintptr(fds[1]), "head")
	defer ours.Close()
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{"gompirun", agentArg}, &os.ProcAttr{Files: []*os.File{theirs, null, os.Stderr}, Env: os.Environ()})
	if err != nil {
		return nil, err
	}
	go p.Wait()
	return net.FileConn(ours)
}
