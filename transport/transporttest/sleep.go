// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// sleep does what an idle engine does: arm, sleep, disarm. A sleep that
// nothing ends within the deadline is an error that says whether an event was
// there all the time.
func (n *node) sleep() error {
	defer n.tr.Disarm()
	if !n.tr.Arm() {
		return nil
	}
	n.sleeps++
	woken, err := n.awaitWake()
	if woken || err != nil {
		return err
	}
	n.tr.Disarm()
	k, err := n.poll()
	if err != nil {
		return err
	}
	return fmt.Errorf("%w (asleep; Poll afterwards returned %d events)", n.w.late(n.String()+" sleeps", n), k)
}

// awaitWake waits for FD or the wake channel; false means that the deadline
// has passed.
func (n *node) awaitWake() (bool, error) {
	fd := n.tr.FD()
	if fd < 0 {
		timer := time.NewTimer(n.w.o.Deadline)
		defer timer.Stop()
		select {
		case <-n.wakes:
			return true, nil
		case <-n.w.abort:
			return true, nil
		case <-timer.C:
			return false, nil
		}
	}
	// Short slices, because the abort channel cannot be waited for together
	// with a descriptor.
	const slice = 50 * time.Millisecond
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for end := time.Now().Add(n.w.o.Deadline); time.Now().Before(end); {
		k, err := unix.Poll(fds, int(slice/time.Millisecond))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false, fmt.Errorf("%v: poll of FD %d: %w", n, fd, err)
		}
		if k > 0 {
			return true, nil
		}
		select {
		case <-n.wakes: // nil where there is no channel: never
			return true, nil
		case <-n.w.abort:
			return true, nil
		default:
		}
	}
	return false, nil
}
