// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func sleepers(t *testing.T) map[string]Sleeper {
	ep, err := NewEpoll()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Sleeper{"chan": NewChan(), "epoll": ep}
}

func TestNoWakeIsLost(t *testing.T) {
	for name, s := range sleepers(t) {
		t.Run(name, func(t *testing.T) {
			defer s.Close()
			const rounds = 5000
			ping := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range ping {
					for range 3 {
						s.Wake()
					}
				}
			}()
			finished := make(chan struct{})
			go func() {
				defer close(finished)
				for i := range rounds {
					ping <- struct{}{}
					for range i % 7 {
						runtime.Gosched()
					}
					s.Sleep()
				}
			}()
			select {
			case <-finished:
			case <-time.After(30 * time.Second):
				t.Fatal("a Wake was lost: Sleep did not return")
			}
			close(ping)
			<-done
		})
	}
}

// One write to a bell wakes all who have it, each time, though nobody reads it; in
// between they sleep.
func TestBell(t *testing.T) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	all := sleepers(t)
	woken := map[string]chan struct{}{}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for name, s := range all {
		if err := s.AddBell(fd); err != nil {
			t.Fatal(err)
		}
		c := make(chan struct{}, 1000)
		woken[name] = c
		wg.Go(func() {
			for !stop.Load() {
				s.Sleep()
				c <- struct{}{}
			}
		})
	}
	one := [8]byte{1}
	for range 50 {
		if _, err := unix.Write(fd, one[:]); err != nil {
			t.Fatal(err)
		}
		for name, c := range woken {
			select {
			case <-c:
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: the bell was not heard", name)
			}
		}
	}
	for name, c := range woken {
		if n := len(c); n > 10 {
			t.Errorf("%s: woken %d times more than rung", name, n)
		}
		all[name].DropBell(fd)
	}
	stop.Store(true)
	for name, s := range all {
		s.Wake()
		<-woken[name]
	}
	wg.Wait()
	for name, s := range all {
		s.Close()
		s.DropBell(fd)
		if s.AddBell(fd) == nil {
			t.Errorf("%s: a bell after the end", name)
		}
	}
}

func TestCloseEndsSleep(t *testing.T) {
	for name, s := range sleepers(t) {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			go func() { s.Sleep(); close(done) }()
			s.Close()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("Sleep outlived Close")
			}
		})
	}
}

func TestGateExcludes(t *testing.T) {
	for _, procs := range []int{1, 2, 4} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		g := NewGate()
		n := 0
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20000 {
					g.Lock()
					n++
					if g.Contended() && n%3 == 0 {
						g.Relax()
					}
					g.Unlock()
				}
			})
		}
		wg.Wait()
		if n != 160000 {
			t.Fatalf("GOMAXPROCS=%d: %d increments, want 160000", procs, n)
		}
	}
}

func BenchmarkGate(b *testing.B) {
	g := NewGate()
	for b.Loop() {
		g.Lock()
		g.Unlock()
	}
}
