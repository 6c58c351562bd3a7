// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"time"

	"gompi/internal/host/wait"
)

// replies decides whether the service goroutine polls on for replies after it has served
// frames (adaptive polling). If all processors of the process compute, the service has
// waited for one until the end of a Go time slice, 10 to 20 ms. Frames that come while it
// polls cost only microseconds, and the other side can send or take little before it is
// answered.
//
// After several long frames, or a frame that a transport has refused, it waits for the
// next. After others it waits if that has paid lately. The waits in vain are bounded by the
// successful ones.
type replies struct {
	frames  uint64 // frames that have come
	long    uint64 // long ones among them
	refused uint64 // frames that a transport has refused
	score   int    // negative: the number of waits to skip
}

const (
	// replyWait is how long it waits: the other side may have to be woken, which takes 50
	// to 150 us. With more ranks than processors it yields to others meanwhile. Otherwise a
	// yield might cost a time slice of a computing goroutine.
	replyWait = 200 * time.Microsecond
	// A frame that has come outweighs mostScore waits in vain. After those it skips
	// -leastScore waits.
	mostScore  = 4
	leastScore = -16
)

// FrameCame records a frame. Others may follow a long one.
func (m *Machine) FrameCame(long bool) { m.replies.came(long) }

// FrameRefused records a frame that a transport has refused.
func (m *Machine) FrameRefused() { m.replies.refused++ }

func (r *replies) came(long bool) {
	r.frames++
	if long {
		r.long++
	}
}

// expected reports whether to wait for more after what has happened since an earlier state.
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

// learn records whether a frame has come during a wait.
func (r *replies) learn(came bool) {
	if came {
		r.score = mostScore
	} else if r.score--; r.score < 0 {
		r.score = leastScore
	}
}

// awaitReply polls until something happens, and reports whether it has. It yields the lock.
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
