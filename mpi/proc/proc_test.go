// SPDX-License-Identifier: Apache-2.0

package proc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/test/scenes"
	"gompi/mpi"
	"gompi/mpi/proc"
)

var list = []scenes.Scene{
	{Name: "spawn", Ranks: 2, Run: spawnTwice},
	{Name: "attach", Ranks: 2, Run: attaches},
	{Name: "stages", Ranks: 1, Run: stages},
	{Name: "status", Ranks: 1, Run: stageStatus},
	{Name: "free", Ranks: 1, Run: frees},
	{Name: "refused", Ranks: 2, Run: refused},
	{Name: "contact", Ranks: 5, Run: contacts},
	{Name: "withdrawn", Ranks: 2, Run: withdrawn},
	{Name: "early", Ranks: 2, Run: earlyClient},
	{Name: "connect", Ranks: 4, Run: connects},
	{Name: "dropped", Ranks: 2, Run: dropped},
}

func TestMain(m *testing.M) { scenes.Main(m, append(slices.Clone(list), programs...)) }

func TestScenes(t *testing.T) { scenes.Run(t, list) }

// started reports whether others have started this process.
func started(w *mpi.Comm) bool { return w.Process().Core().Process().Parent.Number != 0 }

// want is an error if err is of another class, or its text has not all parts.
func want(err error, class mpi.Class, parts ...string) error {
	if !errors.Is(err, class) {
		return fmt.Errorf("error %v, want class %v", err, class)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			return fmt.Errorf("error %q has no %q", err, p)
		}
	}
	return nil
}

// family is what parents and children do with their communicator: each side adds what the
// other has, then both together. It returns what that has come to.
func family(c *mpi.Comm, child bool) (string, error) {
	sum, err := mpi.AllreduceOne(c, 1+c.Rank(), mpi.Sum)
	if err != nil {
		return "", err
	}
	m, err := c.IntercommMerge(child)
	if err != nil {
		return "", err
	}
	ranks, err := mpi.AllgatherNew(m, []int{c.Rank()})
	if err != nil {
		return "", err
	}
	said := fmt.Sprintf("%d of %d, %d others whose sum is %d, together %d of %d: %v", c.Rank(), c.Size(), c.RemoteSize(), sum, m.Rank(), m.Size(), ranks)
	return said, errors.Join(m.Free(), c.Disconnect())
}

// allocate is Iallocate, all or none, and Waitall.
func allocate(p *mpi.Process, n int) ([]*mpi.Persistent, error) {
	reqs, err := proc.Iallocate(p, proc.Places{N: n})
	if err != nil {
		return nil, err
	}
	return reqs, mpi.Waitall(reqs)
}

// Spawn is Iallocate, all or none, Waitall, Startall, Waitall and RemoteAttach: to the
// parents, and to children that are one program.
func spawnTwice(ctx context.Context, w *mpi.Comm) error {
	if started(w) {
		c, err := w.Process().Parent()
		if err != nil || c == nil {
			return fmt.Errorf("the parent is %v, %w", c, err)
		}
		again, err := w.Process().Parent()
		if again != c || err != nil || c.Size() != w.Size() || c.Rank() != w.Rank() {
			return fmt.Errorf("the parent is %v and %v, %w", c, again, err)
		}
		if _, err := family(c, true); err != nil {
			return err
		}
		if c, err = w.Process().Parent(); c != nil || err != nil {
			return fmt.Errorf("after Disconnect the parent is %v, %w", c, err)
		}
		return w.Barrier()
	}
	const n = 3
	c, codes, err := mpi.CommSpawn(w, mpi.Command{Procs: n}, 0)
	if err != nil || len(codes) != n {
		return fmt.Errorf("codes %v, %w", codes, err)
	}
	first, err := family(c, false)
	if err != nil {
		return err
	}
	var reqs []*mpi.Persistent
	if w.Rank() == 1 { // whichever has them
		if reqs, err = allocate(w.Process(), n); err != nil {
			return err
		}
		if err := mpi.Startall(reqs); err != nil {
			return err
		}
		if err := mpi.Waitall(reqs); err != nil {
			return err
		}
	}
	if c, err = proc.RemoteAttach(w, reqs...); err != nil {
		return err
	}
	second, err := family(c, false)
	if err != nil {
		return err
	}
	if first != second {
		return fmt.Errorf("CommSpawn gives %s\nand RemoteAttach %s", first, second)
	}
	if err := mpi.Waitall(reqs); err != nil { // they have exited
		return err
	}
	for _, r := range reqs {
		if x, ok := proc.ExitOf(r); !ok || x.Status != 0 {
			return fmt.Errorf("exit %+v, %v", x, ok)
		}
	}
	return errors.Join(mpi.FreeAll(reqs), w.Barrier())
}

// Attach makes a larger communicator of processes that several ranks have started, one by
// one, and leaves the old one as it is; Detach parts some of them again.
func attaches(ctx context.Context, w *mpi.Comm) error {
	if started(w) {
		m, err := proc.Replace(w)
		if err != nil {
			return err
		}
		if w.Size() != 1 { // the world stays
			return fmt.Errorf("the world has %d ranks", w.Size())
		}
		return inAttached(m, true)
	}
	reqs, err := proc.Allocate(ctx, w.Process(), proc.Places{N: 2})
	if err != nil {
		return err
	}
	for _, r := range reqs { // each is a world
		if err := r.Start(); err != nil {
			return err
		}
	}
	if err := mpi.Waitall(reqs); err != nil {
		return err
	}
	m, err := proc.Attach(w, reqs...)
	if err != nil {
		return err
	}
	if m.Rank() != w.Rank() || w.Size() != 2 {
		return fmt.Errorf("rank %d is %d of the larger one", w.Rank(), m.Rank())
	}
	_, err = proc.RemoteAttach(w, reqs...)
	_, twice := proc.RemoteAttach(w, reqs[0], reqs[0])
	return errors.Join(inAttached(m, false), want(err, mpi.ErrSpawn, "attached already"), want(twice, mpi.ErrRequest, "twice"), mpi.Waitall(reqs), mpi.FreeAll(reqs), w.Barrier())
}

// inAttached is what the six do who are attached: the last that was started stays with
// those who have.
func inAttached(m *mpi.Comm, child bool) error {
	if sum, err := mpi.AllreduceOne(m, 1, mpi.Sum); err != nil || sum != 6 {
		return fmt.Errorf("%d are attached, %w", sum, err)
	}
	leaves := child && m.Rank() != 5
	d, err := proc.Detach(m, leaves)
	switch {
	case err != nil || (d == nil) != leaves:
		return fmt.Errorf("after Detach there is %v, %w", d, err)
	case leaves:
		return nil
	}
	sum, err := mpi.AllreduceOne(d, 1, mpi.Sum)
	if err == nil && sum != 3 {
		err = fmt.Errorf("%d are left", sum)
	}
	return errors.Join(err, d.Free())
}

// A request is complete when it has its place, when its process has started and when that
// has exited; what the scheduler has filled in is there meanwhile.
func stages(ctx context.Context, w *mpi.Comm) error {
	if started(w) {
		c, err := w.Process().Parent()
		if err != nil || c == nil {
			return fmt.Errorf("the parent is %v, %w", c, err)
		}
		_, err = mpi.Recv(c, make([]int, 1), 0, 0)
		return errors.Join(err, c.Disconnect())
	}
	p := w.Process()
	reqs, err := allocate(p, 2)
	if err != nil {
		return err
	}
	r := reqs[0]
	if r.Kind() != proc.Kind || r.Active() || proc.Nodename(r) == "" || !strings.Contains(proc.JSInfo(r), "node="+proc.Nodename(r)) {
		return fmt.Errorf("node %q, info %q", proc.Nodename(r), proc.JSInfo(r))
	}
	if err := errors.Join(want(proc.Signal(15, r), mpi.ErrRequest, "not started"), proc.SetArgs(r, "x"), want(r.Start(), mpi.ErrRequest, "but no program"), proc.SetArgs(r)); err != nil {
		return err
	}
	// Among a message: the exit comes last.
	if err := mpi.Startall(reqs); err != nil {
		return err
	}
	if err := mpi.Waitall(reqs); err != nil {
		return err
	}
	if err := errors.Join(want(proc.SetExec(r, "x"), mpi.ErrRequest), want(r.Start(), mpi.ErrRequest, "active already")); err != nil {
		return err
	}
	c, err := proc.RemoteAttach(w, reqs...)
	if err != nil {
		return err
	}
	if done, err := mpi.Testall(reqs); done || err != nil {
		return fmt.Errorf("they have exited: %v, %w", done, err)
	}
	if _, ok := proc.ExitOf(r); ok {
		return errors.New("it has exited")
	}
	if err := mpi.Send(c, []int{1}, 1, 0); err != nil {
		return err
	}
	if i, _, err := mpi.Waitany(reqs); i != 1 || err != nil {
		return fmt.Errorf("request %d is complete, %w", i, err)
	}
	x, ok := proc.ExitOf(reqs[1])
	if !ok || x.Status != 0 || x.How == "" {
		return fmt.Errorf("exit %+v, %v", x, ok)
	}
	if err := want(reqs[1].Start(), mpi.ErrRequest, "started before"); err != nil {
		return err
	}
	one := []mpi.Request{r.Request(), p.GrequestStart(mpi.Grequest{})}
	if err := mpi.Send(c, []int{1}, 0, 0); err != nil {
		return err
	}
	if i, _, err := mpi.Waitany(one); i != 0 || err != nil {
		return fmt.Errorf("request %d is complete, %w", i, err)
	}
	return errors.Join(one[1].GrequestComplete(), one[1].Free(), c.Disconnect(), mpi.FreeAll(reqs), want(mpi.FreeAll(reqs), mpi.ErrRequest, "freed"))
}

// Requests are freed in each of their stages, and a process of a request that is freed
// runs by itself: it has no parent then.
func frees(ctx context.Context, w *mpi.Comm) error {
	if started(w) {
		if c, err := w.Process().Parent(); c != nil || err != nil {
			return fmt.Errorf("the parent is %v, %w", c, err)
		}
		return w.Barrier()
	}
	p := w.Process()
	for range 3 {
		reqs, err := proc.Iallocate(p, proc.Places{N: 4})
		if err != nil {
			return err
		}
		if err := mpi.FreeAll(reqs[:1]); err != nil { // before it is served
			return err
		}
		if err := mpi.Waitall(reqs[1:]); err != nil {
			return err
		}
		if err := reqs[1].Free(); err != nil {
			return err
		}
		if err := mpi.Startall(reqs[2:]); err != nil {
			return err
		}
		if err := reqs[2].Free(); err != nil { // while it starts
			return err
		}
		if _, err := reqs[3].Wait(); err != nil {
			return err
		}
		if err := reqs[3].Free(); err != nil { // while it runs
			return err
		}
		if _, err := reqs[3].Wait(); !errors.Is(err, mpi.ErrRequest) {
			return fmt.Errorf("after Free: %w", err)
		}
	}
	return nil
}

// What is wrong is said, to all that wait for it.
func refused(ctx context.Context, w *mpi.Comm) error {
	p := w.Process()
	for text, x := range map[string]proc.Places{
		"0 processes":     {},
		"2 nodes for 3":   {N: 3, Nodes: []string{"a", "b"}},
		"2 programs":      {N: 3, Execs: []string{"a", "b"}},
		"not wait":        {N: 1, Scheduler: "queue=7"},
		"not a duration":  {N: 1, Scheduler: "wait=x"},
		"arch: the hosts": {N: 1, Arch: "vax"},
	} {
		if _, err := proc.Iallocate(p, x); want(err, mpi.ErrArg, text) != nil {
			return want(err, mpi.ErrArg, text)
		}
	}
	if _, err := proc.Allocate(ctx, p, proc.Places{N: 2, Nodes: []string{"no?such"}}); want(err, mpi.ErrSpawn, "no?such") != nil {
		return want(err, mpi.ErrSpawn, "no?such")
	}
	var reqs []*mpi.Persistent
	var err error
	if w.Rank() == 1 {
		if reqs, err = proc.Allocate(ctx, p, proc.Places{N: 2, Arch: "*", Execs: []string{"no such program"}}); err != nil {
			return err
		}
	}
	if _, err := proc.RemoteAttach(w, reqs...); err == nil || !errors.Is(err, mpi.ErrRequest) {
		return fmt.Errorf("attached though nothing is started: %w", err)
	}
	if w.Rank() == 1 {
		if err := mpi.Startall(reqs); err != nil {
			return err
		}
		for _, r := range reqs {
			if _, err := r.Wait(); want(err, mpi.ErrSpawn, "no such program") != nil {
				return want(err, mpi.ErrSpawn, "no such program")
			}
			if r.Active() {
				return errors.New("what was not started has a second stage")
			}
		}
	}
	_, err = proc.RemoteAttach(w, mpi.RecvInit(w, []int{0}, 0, 0))
	return errors.Join(want(err, mpi.ErrRequest), mpi.FreeAll(reqs), w.Barrier())
}

// A parallel server accepts clients as they come, and serves each group by itself.
func contacts(ctx context.Context, w *mpi.Comm) error {
	const name, clients = "well-known", 3
	color := max(0, w.Rank()-1) // ranks 0 and 1 serve
	c, err := w.Split(color, w.Rank())
	if err != nil {
		return err
	}
	if color > 0 {
		r := proc.Icontact(w.Process(), name)
		if _, err := r.Wait(); err != nil {
			return err
		}
		d, err := proc.RemoteAttach(c, r)
		if err != nil {
			return err
		}
		sum, err := mpi.AllreduceOne(d, color, mpi.Sum)
		if err == nil && sum != 1 {
			err = fmt.Errorf("client %d got %d", color, sum)
		}
		return errors.Join(err, d.Disconnect(), r.Free(), w.Barrier())
	}
	var reqs []*mpi.Persistent
	if c.Rank() == 0 {
		if reqs, err = proc.Iaccept(w.Process(), name, 2); err != nil {
			return err
		}
		if _, err := proc.Iaccept(w.Process(), name, 1); want(err, mpi.ErrService) != nil {
			return want(err, mpi.ErrService)
		}
	}
	total := 0
	for served := 0; served < clients; {
		var ready []mpi.Completion
		if c.Rank() == 0 {
			if ready = mpi.Waitsome(reqs); len(ready) == 0 {
				return errors.New("no request is active")
			}
			ready = ready[:min(len(ready), clients-served)]
		}
		n, err := mpi.BcastNew(c, []int{len(ready)}, 0)
		if err != nil {
			return err
		}
		for i := range n[0] {
			var r []*mpi.Persistent
			if c.Rank() == 0 {
				if ready[i].Err != nil {
					return ready[i].Err
				}
				r = []*mpi.Persistent{reqs[ready[i].Index]}
			}
			d, err := proc.RemoteAttach(c, r...)
			if err != nil {
				return err
			}
			sum, err := mpi.AllreduceOne(d, c.Rank(), mpi.Sum)
			if err = errors.Join(err, d.Disconnect()); err != nil {
				return err
			}
			total += sum
			for _, q := range r {
				if err := q.Start(); err != nil {
					return err
				}
			}
			served++
		}
	}
	if total != 1+2+3 {
		return fmt.Errorf("the clients' numbers are %d together", total)
	}
	return errors.Join(mpi.FreeAll(reqs), c.Free(), w.Barrier())
}

// A client may be first, and who waits in vain can give up.
func earlyClient(ctx context.Context, w *mpi.Comm) error {
	p := w.Process()
	if w.Rank() == 0 {
		vain := proc.Icontact(p, "nobody")
		if err := vain.Cancel(); err != nil {
			return err
		}
		if st, err := vain.Wait(); err != nil || !st.Cancelled {
			return fmt.Errorf("status %v, %w", st, err)
		}
		r := proc.Icontact(p, "late")
		if done, _, err := r.Test(); done {
			return fmt.Errorf("met before there is anybody: %w", err)
		}
		if err := errors.Join(w.Barrier(), vain.Free()); err != nil {
			return err
		}
		if _, err := r.Wait(); err != nil {
			return err
		}
		d, err := proc.RemoteAttach(p.Self(), r)
		if err != nil {
			return err
		}
		return errors.Join(d.Disconnect(), r.Free(), w.Barrier())
	}
	if err := w.Barrier(); err != nil {
		return err
	}
	reqs, err := proc.Iaccept(p, "late", 2) // of which one is never met
	if err != nil {
		return err
	}
	i, _, err := mpi.Waitany(reqs)
	if err != nil {
		return err
	}
	d, err := proc.RemoteAttach(p.Self(), reqs[i])
	if err != nil {
		return err
	}
	if _, err := proc.RemoteAttach(p.Self(), reqs[i]); want(err, mpi.ErrRequest, "has met no process") != nil {
		return want(err, mpi.ErrRequest, "has met no process")
	}
	return errors.Join(d.Disconnect(), mpi.FreeAll(reqs), w.Barrier())
}

// Groups connect by a name, one after the other, and who gives up tells its group.
func connects(ctx context.Context, w *mpi.Comm) error {
	color := max(0, w.Rank()-1) // ranks 0 and 1 serve
	c, err := w.Split(color, w.Rank())
	if err != nil {
		return err
	}
	if color > 0 {
		d, err := proc.ClientConnect(c, "front", 0)
		if err != nil {
			return err
		}
		sum, err := mpi.AllreduceOne(d, 10, mpi.Sum)
		if err == nil && sum != 2 {
			err = fmt.Errorf("the servers' sum is %d", sum)
		}
		return errors.Join(err, d.Disconnect(), w.Barrier())
	}
	for i := range 2 {
		d, err := proc.ServerConnect(c, "front", i)
		if err != nil {
			return err
		}
		sum, err := mpi.AllreduceOne(d, 1, mpi.Sum)
		if err == nil && sum != 10 {
			err = fmt.Errorf("the client's sum is %d", sum)
		}
		if err = errors.Join(err, d.Disconnect()); err != nil {
			return err
		}
	}
	vain := c
	if c.Rank() == 1 {
		short, cancel := context.WithCancel(ctx)
		cancel()
		vain = c.WithContext(short)
	}
	_, err = proc.ServerConnect(vain, "nobody comes", 1)
	if c.Rank() == 1 && !errors.Is(err, mpi.ErrCancelled) || c.Rank() == 0 && !errors.Is(err, mpi.ErrRequest) {
		return fmt.Errorf("one has given up: %w", err)
	}
	return w.Barrier()
}

// Who was met and is dropped is told so.
func dropped(ctx context.Context, w *mpi.Comm) error {
	p := w.Process()
	if w.Rank() == 0 {
		reqs, err := proc.Iaccept(p, "fickle", 1)
		if err != nil {
			return err
		}
		return errors.Join(mpi.Waitall(reqs), mpi.FreeAll(reqs), w.Barrier())
	}
	r := proc.Icontact(p, "fickle")
	if _, err := r.Wait(); err != nil {
		return err
	}
	_, err := proc.RemoteAttach(p.Self(), r)
	return errors.Join(want(err, mpi.ErrRevoked), r.Free(), w.Barrier())
}

// A contact that was given up meets nobody: who comes then meets the next one.
func withdrawn(ctx context.Context, w *mpi.Comm) error {
	p := w.Process()
	var served []*mpi.Persistent
	if w.Rank() == 0 {
		var err error
		if served, err = proc.Iaccept(p, "patient", 1); err != nil {
			return err
		}
	}
	for round := range 60 {
		var r *mpi.Persistent
		quits := round%2 == w.Rank()
		switch {
		case w.Rank() == 1 && quits:
			r = proc.Icontact(p, "patient")
		case w.Rank() == 0:
			r = served[0]
			if round > 0 && quits {
				if err := r.Start(); err != nil {
					return err
				}
			}
		}
		if quits {
			<-time.After(time.Duration(round%5) * 100 * time.Microsecond)
			if err := r.Cancel(); err != nil {
				return err
			}
			if st, err := r.Wait(); err != nil || !st.Cancelled {
				return fmt.Errorf("round %d: status %v, %w", round, st, err)
			}
		}
		if err := w.Barrier(); err != nil {
			return err
		}
		switch {
		case w.Rank() == 0:
			if err := r.Start(); err != nil {
				return err
			}
		case quits:
			if err := r.Free(); err != nil {
				return err
			}
			fallthrough
		default:
			r = proc.Icontact(p, "patient")
		}
		if _, err := r.Wait(); err != nil {
			return err
		}
		d, err := proc.RemoteAttach(p.Self(), r)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if err := d.Disconnect(); err != nil {
			return err
		}
		if w.Rank() == 1 {
			if err := r.Free(); err != nil {
				return err
			}
		}
	}
	return errors.Join(mpi.FreeAll(served), w.Barrier())
}
