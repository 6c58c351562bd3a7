// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"gompi/internal/control"
	"gompi/internal/core"
	"gompi/internal/rollcall"
	"gompi/internal/segment"
	"gompi/internal/wait"
	"gompi/transport"
	"gompi/transport/shm"
	"gompi/transport/tcp"
)

// join is Init under gompirun.
func join(addr, token string) (*Process, error) {
	client, w, err := control.Dial(addr, token)
	if err != nil {
		return nil, fmt.Errorf("gompi: %w", err)
	}
	setMaxProcs(w.MaxProcs)
	// Siblings copy from and to this process; under yama only descendants of
	// the named process may.
	unix.Prctl(unix.PR_SET_PTRACER, uintptr(os.Getppid()), 0, 0, 0)
	b := core.Boot{Control: client, Welcome: w, Policy: policy(w.LocalProcs, w.UsableCPUs, w.Settings), Lost: exitLost}
	p, err := bootOS(b)
	if err != nil {
		client.Abort(1, err.Error())
		return nil, err
	}
	return p, nil
}

// exitLost ends a process whose launcher is gone: nobody would end it else.
func exitLost(why error) {
	if strings.Contains(why.Error(), "is lost") {
		fmt.Fprintln(os.Stderr, why)
		os.Exit(1)
	}
}

// defaultTransports is the order of preference.
const defaultTransports = "shm,tcp"

// bootOS opens what an operating system process has: transports, epoll and its
// page in the roll call.
func bootOS(b core.Boot) (*Process, error) {
	s, err := wait.NewEpoll()
	if err != nil {
		return nil, fmt.Errorf("gompi: %w", err)
	}
	b.Sleeper = s
	w := b.Welcome
	if w.Segment >= 0 {
		if err := segment.Check(w.Segment, w.Self); err != nil {
			return nil, fmt.Errorf("gompi: %w", err)
		}
		mem, err := segment.Map(w.Segment, segment.RollCall, segment.RollCallBytes, true)
		if err != nil {
			return nil, fmt.Errorf("gompi: roll call: %w", err)
		}
		if b.Book, err = rollcall.Open(mem); err != nil {
			return nil, fmt.Errorf("gompi: roll call: %w", err)
		}
	}
	env := transport.Env{Self: w.Self, Secret: w.Secret, Wake: s.Wake, Setting: b.Setting, Segment: w.Segment, Bell: w.Bell}
	if b.Transports, err = openTransports(b.Setting("GOMPI_TRANSPORT"), env, b.Control); err != nil {
		return nil, err
	}
	p, err := Start(b)
	if err != nil {
		return nil, err
	}
	p.local = true
	return p, nil
}

func openTransports(list string, env transport.Env, ctl core.Control) ([]transport.Transport, error) {
	forced := list != ""
	if !forced {
		list = defaultTransports
	}
	var ts []transport.Transport
	var addrs []string
	for _, name := range strings.Split(list, ",") {
		var t transport.Transport
		var err error
		switch name = strings.TrimSpace(name); name {
		case "shm":
			t, err = shm.Open(env)
		case "tcp":
			// On one host everybody is reached by shared memory: a listener
			// that nobody dials would only cost start-up time.
			if len(ts) > 0 && !forced {
				continue
			}
			var tt *tcp.Transport
			if tt, err = tcp.Open(env, tcp.Options{}); err == nil {
				t, addrs = tt, tt.Addrs()
			}
		default:
			err = fmt.Errorf("unknown; there are shm and tcp")
		}
		if err != nil {
			return nil, fmt.Errorf("gompi: transport %q: %w", name, err)
		}
		ts = append(ts, t)
	}
	// Peers wait for this before they make contact, also if there is no
	// address.
	if err := ctl.Announce(addrs); err != nil {
		return nil, fmt.Errorf("gompi: %w", err)
	}
	return ts, nil
}
