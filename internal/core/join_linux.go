// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gompi/internal/control/client"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// join is Join under gompirun.
func join(addr, token string) (Boot, error) {
	var ctl *client.Client
	var w *protocol.Welcome
	var err error
	if os.Getenv(protocol.EnvSpare) == "" {
		ctl, w, err = client.Dial(addr, token)
	} else if ctl, w, err = client.DialSpare(addr, token); err != nil {
		os.Exit(0) // nobody has needed it
	} else {
		knows(w)
	}
	if err != nil {
		return Boot{}, fmt.Errorf("gompi: %w", err)
	}
	// Siblings copy from and to this process; under yama only descendants of
	// the named process may.
	unix.Prctl(unix.PR_SET_PTRACER, uintptr(os.Getppid()), 0, 0, 0)
	b, err := Open(ctl, w, Place{Transports: w.Settings["GOMPI_TRANSPORT"]})
	if err != nil {
		ctl.Abort(1, err.Error())
		return Boot{}, err
	}
	b.Lost = exitLost
	return b, nil
}

// knows puts into the environment of a spare what others find there from the start.
func knows(w *protocol.Welcome) {
	os.Unsetenv(protocol.EnvSpare)
	for name, n := range map[string]int{"GOMPI_RANK": w.World.Members.Index(w.Self), "GOMPI_SIZE": w.World.Members.Len()} {
		os.Setenv(name, strconv.Itoa(n))
	}
}

// page is where a process has its roll call, which its agent reads.
func page(w *protocol.Welcome) ([]byte, error) {
	if err := segment.Check(w.Segment, w.Self); err != nil {
		return nil, err
	}
	return segment.Map(w.Segment, segment.CallRegistry, segment.CallRegistryBytes, true)
}

// exitLost ends a process whose launcher is gone: nobody would end it else.
func exitLost(why error) {
	if strings.Contains(why.Error(), "is lost") {
		fmt.Fprintln(os.Stderr, why)
		os.Exit(1)
	}
}
