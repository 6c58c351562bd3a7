// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gompi/mpi"
	"gompi/sessions"
)

// Checkpoint is the one call of each iteration, the same on all ranks. It counts its
// calls, asks for a change that SetTarget wishes, and tells how far a change is; the
// Checkpoint in which all members are handed it, which is of the same iteration on all,
// moves the data, runs the user phase and commits: Completed, after which Comm and all
// variables are new, and Iteration is one more than that of the call, on newcomers too.
// With Check it waits for nobody unless a change is handed out; with Wait, until the
// change that is coming is over, and then all members must call it with Wait in that
// iteration. Another completion is ErrArg: such a call does not count, and others that wait
// do so until it is made again. The call counts if the change that SetTarget wishes is
// refused, which it says. A change that was rolled back is no error: the state is NotStarted, and
// everything is what it was. ErrLeaving: this process leaves; its main function returns
// the error. Another error of a change that was handed out is of this process's part: of its
// user function, a variable, its memory. With the state NotStarted the change was rolled back
// for all at once, the others see that without an error, and this process may go on, too;
// else it cannot. Collective over Comm as far as members must all call it.
//
// MAM_Checkpoint of MaM.
func (m *Module) Checkpoint(how Completion) (State, error) {
	const op = "Checkpoint"
	if err := m.open(op); err != nil {
		return Unreserved, err
	}
	if how > Wait {
		return m.State(), m.refuse(op, mpi.ErrArg, fmt.Errorf("completion %d", how))
	}
	c, err := m.checkIn(how)
	if err != nil {
		return m.State(), err
	}
	if c != nil {
		if m.adopting, err = m.handed(c); err != nil {
			return m.failed(c, err)
		}
	}
	if m.adopting == nil {
		return m.State(), nil
	}
	return m.goOn(how)
}

// checkIn is the part of a Checkpoint in which data may be lent: the program does not compute,
// and no user function is called. Others do not know of an error of admit: this process
// takes part in what all do, and says the error when it is handed nothing.
func (m *Module) checkIn(how Completion) (c *sessions.Change, err error) {
	m.computing.Unlock()
	defer m.computing.Lock()
	m.unsaid = errors.Join(m.unsaid, m.admit())
	defer func() {
		if c == nil && m.adopting == nil {
			err, m.unsaid = errors.Join(err, m.unsaid), nil
		}
	}()
	if err := m.awaitNewcomers(); err != nil {
		return nil, err
	}
	if t := m.tested.Load(); t != nil {
		t.test()
	}
	number := m.iteration + m.ahead
	if c, err = m.w.Check(number); err != nil {
		return nil, err
	}
	m.calls, m.iteration = m.calls+1, m.iteration+1
	switch {
	case c != nil || m.adopting != nil:
		return c, nil
	case how == Wait:
		return m.await(number)
	}
	return nil, m.takeTrouble()
}

var errMixed = errors.New("in one iteration some ranks have called Checkpoint with Wait, and some with Check")

// goOn does what is to be done of a change that was handed out.
func (m *Module) goOn(how Completion) (State, error) {
	a := m.adopting
	for {
		over, err := a.userPhase()
		if err != nil {
			return m.failed(a.c, err)
		}
		if over {
			break
		}
		if how == Check {
			return UserPending, nil
		}
	}
	if err := a.finish(); err != nil {
		return m.failed(a.c, err)
	}
	return m.commit()
}

// admit lets changes be: registrations and settings until now belong to before them.
func (m *Module) admit() error {
	if !m.admitted {
		if err := m.publish(); err != nil {
			return err
		}
	}
	if m.comm.Rank() == 0 {
		if err := m.ask(); err != nil {
			return err
		}
	} else {
		m.target = 0
	}
	if !m.admitted { // which this goroutine alone writes
		m.openGate()
	}
	return nil
}

// takeTrouble is why a change could not be prepared, once: said behind what all do together
// in a Checkpoint, as others may not have any.
func (m *Module) takeTrouble() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := m.trouble
	m.trouble = nil
	return err
}

// publish lets newcomers know what there is: rank 0 puts the registry into the store of
// the set, and who has data that is read where it lies shows it.
func (m *Module) publish() error {
	store, err := m.s.Store(m.set)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.inputs.Hosts = hosts(m.comm)
	m.mu.Unlock()
	if m.comm.Rank() == 0 {
		b, err := m.registry(m.arrays).encode()
		if err != nil {
			return m.refuse("Checkpoint", mpi.ErrArg, err)
		}
		if err := volumes(b, store.Put); err != nil {
			return err
		}
	}
	m.tell()
	return m.show(store)
}

// wish is a change that this process has asked for.
type wish struct {
	n       int
	o       *sessions.Operation
	granted chan struct{}    // closed when it is, and awaits is set
	awaits  string           // the name of its result, if newcomers come
	waited  bool             // for them
	over    chan struct{}    // closed when it is decided, or does not happen
	outcome sessions.Outcome // when over is closed
}

// spans is how long the change that has made a set was with the manager, and in which time
// its newcomers came up; zero if it was none of this wish. The head hears of the decision
// after the members.
func (x *wish) spans(ctx context.Context, result string) (rms, spawn time.Duration) {
	if x.o.State() < sessions.Granted {
		return 0, 0 // it waits behind the change
	}
	parts, err := x.o.Granted(ctx)
	if err != nil {
		return 0, 0 // nothing came of it
	}
	i := slices.IndexFunc(parts, func(o sessions.Output) bool { return o.Result == result })
	if i < 0 {
		return 0, 0
	}
	<-x.over
	rms = x.outcome.Times.Granted
	if len(parts[i].Joining) > 0 {
		spawn = max(x.outcome.Times.Ready-rms, 0)
	}
	return rms, spawn
}

// grant notes what comes of a wish that is granted.
func (x *wish) grant(ctx context.Context) {
	select {
	case <-x.granted:
		return
	default:
	}
	if parts, err := x.o.Granted(ctx); err == nil && len(parts[0].Joining) > 0 {
		x.awaits = parts[0].Result
	}
	close(x.granted)
}

// pending reports whether the wish is under way.
func (x *wish) pending() bool {
	if x == nil {
		return false
	}
	select {
	case <-x.over:
		return false
	default:
		return true
	}
}

// ask submits what SetTarget has said.
func (m *Module) ask() error {
	n, ns := m.target, m.comm.Size()
	if m.wish.pending() && m.wish.n == n {
		return nil // it stays to be asked for, if that is rolled back
	}
	m.target = 0
	if n == 0 || !m.wish.pending() && n == ns && m.config.Process != Baseline {
		return nil
	}
	r := sessions.Request{Kind: sessions.Replace, In: []string{"gompi://main"}, Size: n}
	if n != ns || m.config.Process == Baseline {
		if err := m.span("mpi://WORLD"); err != nil {
			return err
		}
		config, why := repaired(m.config, ns, n, m.spans)
		if len(why) > 0 {
			m.say(nil, why...)
		}
		config.order(&r)
		if config.Process == Baseline {
			r.In, r.Size, r.Add = []string{m.set}, 0, []int{n}
			for rank := range ns {
				r.Ranks = append(r.Ranks, rank)
			}
		}
	}
	o, err := sessions.Submit(m.ctx, r)
	if err != nil {
		return err
	}
	x := &wish{n: n, o: o, granted: make(chan struct{}), over: make(chan struct{})}
	m.wish = x
	if o.State() >= sessions.Granted { // mostly
		x.grant(m.ctx)
	}
	m.done.Go(func() {
		defer close(x.over)
		defer o.Free()
		if _, err := o.Granted(m.life); err == nil {
			x.grant(m.life)
		}
		x.outcome, _ = o.Decided(m.life) // what came of it the page says
	})
	return nil
}
