// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"gompi/internal/control"
	"gompi/internal/control/client"
	"gompi/internal/segment"
)

// join is Join under gompirun.
func join(addr, token string) (Boot, error) {
	ctl, w, err := client.Dial(addr, token)
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

// page is where a process has its roll call, which its agent reads.
func page(w *control.Welcome) ([]byte, error) {
	if err := segment.Check(w.Segment, w.Self); err != nil {
		return nil, err
	}
	return segment.Map(w.Segment, segment.RollCall, segment.RollCallBytes, true)
}

// exitLost ends a process whose launcher is gone: nobody would end it else.
func exitLost(why error) {
	if strings.Contains(why.Error(), "is lost") {
		fmt.Fprintln(os.Stderr, why)
		os.Exit(1)
	}
}
