// SPDX-License-Identifier: Apache-2.0

package value

import (
	"sync"

	"gompi/mpi"
)

// Receive is an Irecv under way. Safe for any goroutine.
type Receive[T any] struct {
	done chan struct{}
	v    T
	st   mpi.Status
	err  error
}

// Irecv starts a Recv. Messages go to the Irecvs that they fit in the order of
// these calls; a Recv that is called before Wait has returned may take one
// earlier.
func Irecv[T any](c *mpi.Comm, source, tag int) *Receive[T] {
	r := &Receive[T]{done: make(chan struct{})}
	q := receivesOf(c)
	me, before := q.join(c, source, tag)
	go func() {
		defer close(r.done)
		defer q.leave(me)
		for _, b := range before {
			<-b.done
		}
		r.v, r.st, r.err = Recv[T](c, source, tag)
	}()
	return r
}

// Wait returns what Recv would have: the value, once it is there.
func (r *Receive[T]) Wait() (T, mpi.Status, error) {
	<-r.done
	return r.v, r.st, r.err
}

// Test reports whether Wait would return at once.
func (r *Receive[T]) Test() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// receives are the Irecvs under way of one process.
type receives struct {
	mu   sync.Mutex
	list []*receiving // in the order of the calls
}

// receiving is one of them.
type receiving struct {
	comm        *mpi.Comm
	source, tag int
	done        chan struct{}
}

type receivesKey struct{}

func receivesOf(c *mpi.Comm) *receives {
	if c == nil {
		return new(receives) // the call ends with an error
	}
	return c.Process().Core().Process().Keep(receivesKey{}, func() any { return new(receives) }).(*receives)
}

// join enters a receive, and returns those before it that may want the same
// message.
func (q *receives) join(c *mpi.Comm, source, tag int) (me *receiving, before []*receiving) {
	me = &receiving{comm: c, source: source, tag: tag, done: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.list {
		if r.comm.Compare(c) == mpi.Ident && overlap(r.source, source, mpi.AnySource) && overlap(r.tag, tag, mpi.AnyTag) {
			before = append(before, r)
		}
	}
	q.list = append(q.list, me)
	return me, before
}

func overlap(a, b, anything int) bool { return a == b || a == anything || b == anything }

// leave ends a receive.
func (q *receives) leave(me *receiving) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, r := range q.list {
		if r == me {
			q.list = append(q.list[:i], q.list[i+1:]...)
			break
		}
	}
	close(me.done)
}
