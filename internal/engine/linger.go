// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"gompi/internal/wait"
)

// linger says how long the service goroutine looks on after it has served
// remote memory. Where all processors of the process compute it has waited for
// one of them until the end of a time slice of Go's, 10 to 20 ms: what comes
// while it is there costs microseconds, and the other side can send or take
// only so much before it has been answered.
//
// After several long frames, or what a transport has not taken, it stays. After
// others it does if that has paid lately: what it has waited for in vain is
// bounded by what it has not.
type linger struct {
	frames uint64 // that have come
	long   uint64 // of those
	left   uint64 // times that a transport has refused one
	hope   int    // negative: so many times it does not stay
}

const (
	// longFrame is the length of frames that others may follow.
	longFrame = FrameMax / 2
	// lingerTime is how long it stays: the other side may have to be woken, which
	// takes 50 to 150 us. Where there are more ranks than processors it lets others
	// run meanwhile; elsewhere that might cost a time slice of one that computes.
	lingerTime = 200 * time.Microsecond
	// A frame that has come outweighs mostHope that have not; then it does not
	// stay for -noHope times.
	mostHope = 4
	noHope   = -16
)

// came notes a frame of so many bytes.
func (l *linger) came(n int) {
	l.frames++
	if n >= longFrame {
		l.long++
	}
}

// refused notes one that a transport has not taken.
func (l *linger) refused() { l.left++ }

// stays reports whether to stay after what has happened since an earlier state.
func (l *linger) stays(was linger) bool {
	switch {
	case l.left != was.left, l.long-was.long > 1:
		return true
	case l.frames == was.frames:
		return false
	case l.hope < 0:
		l.hope++
		return false
	}
	return true
}

// paid notes whether a frame has come to whoever stayed.
func (l *linger) paid(yes bool) {
	if yes {
		l.hope = mostHope
	} else if l.hope--; l.hope < 0 {
		l.hope = noHope
	}
}

// lookOn polls until something happens, and reports whether it has. The lock is
// held, and given to whoever wants it.
func (e *Engine) lookOn() bool {
	frames, end := e.linger.frames, time.Now().Add(lingerTime)
	for !e.closed && !e.leading && e.waits == 0 {
		if e.poll(true) > 0 {
			e.linger.paid(e.linger.frames != frames)
			return true
		}
		switch {
		case e.mu.Contended():
			e.mu.Relax()
			return false
		case !time.Now().Before(end):
			e.linger.paid(false)
			return false
		case !e.policy.Crowded():
			wait.Pause()
		default:
			e.yield(0)
		}
	}
	return false
}
