// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// bell is the descriptor of another process's bell.
type bell int

func (b bell) Ring()  { ringBell(int(b)) }
func (b bell) Close() { closeFD(int(b)) }

// Bell implements transport.Sharer.
func (t *Transport) Bell(c wire.Contact) (transport.Bell, error) {
	closeFD(c.Segment)
	if !c.SameHost || c.Bell < 0 {
		return nil, fmt.Errorf("shm: process %v gave no bell: %w", c.Proc, transport.ErrUnreachable)
	}
	return bell(c.Bell), nil
}

// bellName is the descriptor number of a process's bell, and the kernel's id of the
// eventfd. The id proves that the descriptor is that bell, and not one of another process
// with the same pid.
type bellName struct {
	once sync.Once
	name [2]uint64
}

// BellName implements transport.Sharer.
func (t *Transport) BellName() [2]uint64 {
	n := &t.bellName
	n.once.Do(func() {
		if id := eventfdID(t.env.Bell); id > 0 && !t.cmaOff {
			n.name = [2]uint64{uint64(os.Getpid())<<32 | uint64(t.env.Bell), id}
		}
	})
	return n.name
}

// NamedBell implements transport.Sharer. It duplicates the other process's descriptor,
// which needs the same right as a copy out of its memory.
func (t *Transport) NamedBell(p wire.ProcID, name [2]uint64) (transport.Bell, error) {
	pid, at := name[0]>>32, name[0]&math.MaxUint32
	if t.cmaOff || name[1] == 0 || pid == 0 || pid > math.MaxInt32 || at > math.MaxInt32 {
		return nil, fmt.Errorf("shm: the bell of process %v has no name: %w", p, transport.ErrUnreachable)
	}
	of, err := unix.PidfdOpen(int(pid), 0)
	if err != nil {
		return nil, fmt.Errorf("shm: process %v, pid %d: %w", p, pid, err)
	}
	fd, err := unix.PidfdGetfd(of, int(at), 0) // closed by exec
	unix.Close(of)
	if err != nil {
		return nil, fmt.Errorf("shm: descriptor %d of process %v, pid %d: %w", at, p, pid, err)
	}
	if id := eventfdID(fd); id != name[1] {
		unix.Close(fd)
		return nil, fmt.Errorf("shm: descriptor %d of process %v, pid %d, is number %d instead of %d: %w", at, p, pid, id, name[1], transport.ErrProtocol)
	}
	return bell(fd), nil
}

// eventfdID returns 1 + the kernel's id of an eventfd. It returns 0 if the kernel has none
// (Linux before 5.2), or fd is not an eventfd.
func eventfdID(fd int) uint64 {
	info, err := unix.Open("/proc/self/fdinfo/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(info)
	var buf [512]byte
	n, err := unix.Read(info, buf[:])
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(buf[:n]), "\neventfd-id:")
	line, _, _ := strings.Cut(rest, "\n")
	id, err := strconv.ParseUint(strings.TrimSpace(line), 10, 32)
	if err != nil {
		return 0
	}
	return id + 1
}
