// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"gompi/mpi"
)

const (
	// A probe is the best of several series of round trips, so that interrupted ones do
	// not count.
	probeSeries = 4
	probeTrips  = 64
	// probePatience is how long a probe waits for the other rank.
	probePatience = 30 * time.Second

	probeBytes = 4096 // a page
	nonceAt    = 2048
	nonceBytes = 16
	tagNever   = 32766 // no benchmark sends it
)

// probe is a cache line between two ranks of a host. It tells how far apart the processors
// are on which they run at the moment.
type probe struct {
	world  *mpi.Comm
	memory []byte
	word   *atomic.Uint64
	turn   uint64
}

// newProbe makes a probe for both ranks of world, in memory of its own; nil: they share no
// memory. Collective. Errors: those of communication.
func newProbe(world *mpi.Comm) (*probe, error) {
	p := &probe{world: world}
	file := -1
	var at [64 + nonceBytes]byte // where rank 0's memory is, and what it begins with
	if world.Rank() == 0 {
		if fd, err := unix.MemfdCreate("gompibench", unix.MFD_CLOEXEC); err == nil {
			file = fd
			defer unix.Close(fd)
			copy(at[:64], fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd))
			rand.Read(at[64:])
			if unix.Ftruncate(fd, probeBytes) != nil {
				at[0] = 0
			} else if _, err := unix.Pwrite(fd, at[64:], nonceAt); err != nil {
				at[0] = 0
			}
		}
	}
	if err := mpi.Bcast(world, at[:], 0); err != nil {
		return nil, err
	}
	if world.Rank() != 0 && at[0] != 0 {
		if fd, err := unix.Open(unix.ByteSliceToString(at[:64]), unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
			defer unix.Close(fd)
			var nonce [nonceBytes]byte
			if n, err := unix.Pread(fd, nonce[:], nonceAt); n == nonceBytes && err == nil && nonce == [nonceBytes]byte(at[64:]) {
				file = fd
			}
		}
	}
	if at[0] != 0 && file >= 0 {
		if m, err := unix.Mmap(file, 0, probeBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
			p.memory, p.word = m, wordAt(m)
		}
	}
	// This also keeps rank 0's descriptor open for the other rank.
	all, err := mpi.AllreduceOne(world, p.word != nil, mpi.LogAnd)
	if err != nil || !all {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *probe) close() error {
	if p == nil || p.memory == nil {
		return nil
	}
	err := unix.Munmap(p.memory)
	p.memory, p.word = nil, nil
	return err
}

// nsec returns the round-trip time of the line for rank 0, in nanoseconds; 0: not known.
// Collective.
func (p *probe) nsec() (float64, error) {
	if p == nil {
		return 0, nil
	}
	// A rank without more work in a block waits in the library, as it does without a
	// probe: others may need it there.
	if err := p.world.Barrier(); err != nil {
		return 0, err
	}
	best := 0.0
	for range probeSeries {
		begin := time.Now()
		for range probeTrips {
			if err := p.trip(); err != nil {
				return 0, err
			}
		}
		if ns := float64(time.Since(begin).Nanoseconds()) / probeTrips; best == 0 || ns < best {
			best = ns
		}
	}
	return best, nil
}

func (p *probe) trip() error {
	p.turn += 2
	if p.world.Rank() == 0 {
		p.word.Store(p.turn - 1)
		return p.await(p.turn)
	}
	if err := p.await(p.turn - 1); err != nil {
		return err
	}
	p.word.Store(p.turn)
	return nil
}

// await returns when the line has come. It yields if the other rank is blocked in the
// library, or shares the processor.
func (p *probe) await(turn uint64) error {
	const spins = 1 << 12
	var since time.Time
	for n := 1; p.word.Load() != turn; n++ {
		if n%spins != 0 {
			continue
		}
		if _, _, err := p.world.Iprobe(1-p.world.Rank(), tagNever); err != nil {
			return err
		}
		runtime.Gosched()
		_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		if since.IsZero() {
			since = time.Now()
		} else if d := time.Since(since); d > probePatience {
			return fmt.Errorf("bench: rank %d has not answered a probe for %v", 1-p.world.Rank(), d)
		}
	}
	return nil
}
