// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"time"

	"gompi/internal/host/wait"
)

// replies says whether the service goroutine polls on for replies after it has
// served frames (adaptive polling). Where all processors of the process compute
// it has waited for one of them until the end of a time slice of Go's, 10 to
// 20 ms: what comes while it is there costs microseconds, and the other side can
// send or take only so much before it has been answered.
//
// After several long frames, or what a transport has not taken, it waits for the
// next. After others it does if that has paid lately: what it has waited for in
// vain is bounded by what it has not.
type replies struct {
	frames  uint64 // that have come
	long    uint64 // of those
	refused uint64 // times that a transport has refused one
	score   int    // negative: so many times it does not wait
}

const (
	// replyWait is how long it waits: the other side may have to be woken, which
	// takes 50 to 150 us. Where there are more ranks than processors it lets others
	// run meanwhile; elsewhere that might cost a time slice of one that computes.
	replyWait = 200 * time.Microsecond
	// A frame that has come outweighs mostScore that have not; then it does not
	// wait for -leastScore times.
	mostScore  = 4
	leastScore = -16
)

// FrameCame notes a frame. Others may follow a long one.
func (m *Machine) FrameCame(long bool) { m.replies.came(long) }

// FrameRefused notes one that a transport has not taken.
func (m *Machine) FrameRefused() { m.replies.refused++ }

func (r *replies) came(long bool) {
	r.frames++
	if long {
		r.long++
	}
}

// expected reports whether to wait for more after what has happened since an
// earlier state.
func (r *replies) expected(was replies) bool {
	switch {
	case r.refused != was.refused, r.long-was.long > 1:
		return true
	case r.frames == was.frames:
		return false
	case r.score < 0:
		r.score++
		return false
	}
	return true
}

// learn notes whether a frame has come to who waited for it.
func (r *replies) learn(came bool) {
	if came {
		r.score = mostScore
	} else if r.score--; r.score < 0 {
		r.score = leastScore
	}
}

// awaitReply polls until something happens, and reports whether it has. The lock
// is given to whoever wants it.
func (m *Machine) awaitReply() bool {
	frames, end := m.replies.frames, time.Now().Add(replyWait)
	for !m.closed && !m.leading && m.waits == 0 {
		if m.process.Poll(true) > 0 {
			m.replies.learn(m.replies.frames != frames)
			return true
		}
		switch {
		case m.mu.Contended():
			m.mu.Relax()
			return false
		case !time.Now().Before(end):
			m.replies.learn(false)
			return false
		case !m.Policy.Oversubscribed():
			wait.Pause()
		default:
			m.Yield(0)
		}
	}
	return false
}
