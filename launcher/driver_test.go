// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gompi/internal/control/change"
	"gompi/internal/control/head"
	"gompi/internal/control/protocol"
	"gompi/launcher/rm"
)

// told is a control plane that does what it is told, if that is more than 1.
type told struct {
	s     *driver
	done  chan struct{}
	sizes chan int // that it was asked for
	early int      // questions before anybody follows

	mu  sync.Mutex
	use head.Use

	crowded bool // until it was resized
}

func (p *told) Done() <-chan struct{} { return p.done }

func (p *told) Lease(slots int) head.Use {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.use.Wants > 0 && slots >= p.use.Least {
		p.use.Has, p.use.Wants, p.use.Least = min(slots, p.use.Wants), 0, 0
	}
	return p.use
}

func (p *told) LeaseMain(slots int, part func(protocol.Message) bool) error {
	return p.Resize(&protocol.Resize{To: slots}, part)
}

func (p *told) HostSlots(slots []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.crowded = slots[0] == 0
}

func (p *told) Crowded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crowded
}

// becomes is a change of its own accord.
func (p *told) becomes(u head.Use) {
	p.mu.Lock()
	p.use = u
	p.mu.Unlock()
	p.s.update(func() { p.s.size = u.Has })
}

func (p *told) Resize(m *protocol.Resize, part func(protocol.Message) bool) error {
	r := &protocol.OpReport{}
	p.mu.Lock()
	p.crowded = false
	p.mu.Unlock()
	if p.early > 0 {
		p.early--
		r.Op.State, r.Op.Why = change.Refused, protocol.WhyNoWatch
		part(r)
		return nil
	}
	r.Op.State = change.Ready
	part(r)
	if r.Op.State, r.After = change.Done, m.To; m.To == 1 {
		r.Op.State, r.Op.Why, r.Op.Text = change.RolledBack, protocol.WhyDied, "a process died"
	} else {
		p.becomes(head.Use{Has: m.To, Follows: true})
	}
	part(r)
	p.sizes <- m.To
	return nil
}

// script is a manager that decides one size after the other, at each event, 0 is none,
// and notes what it is told.
type script struct {
	sizes []int
	told  chan rm.Event
}

func (m *script) Step(_ time.Duration, events ...rm.Event) (list []rm.Decision) {
	for _, ev := range events {
		m.told <- ev
		if len(m.sizes) > 0 {
			if n := m.sizes[0]; n > 0 {
				list = append(list, rm.Decision{Job: theJob, Size: n, From: 1})
			}
			m.sizes = m.sizes[1:]
		}
	}
	return list
}

func (*script) Next() (time.Duration, bool) { return 0, false }

// The manager hears of each change once, of one that does not happen with the size that
// there is, and of one that others have made.
func TestDriver(t *testing.T) {
	m := &script{sizes: []int{4, 1, 9}, told: make(chan rm.Event)}
	s := newDriver("--schedule", m)
	p := &told{s: s, done: make(chan struct{}), sizes: make(chan int, 10), early: 2}
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.run(p)
	}()
	want := func(ev rm.Event) {
		t.Helper()
		select {
		case got := <-m.told:
			if got != ev {
				t.Errorf("told %+v, want %+v", got, ev)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("not told %+v", ev)
		}
	}
	p.becomes(head.Use{Has: 2})
	want(rm.Arrived{Job: rm.Job{ID: theJob, Size: 2, Follows: true}})
	want(rm.Sized{Job: theJob, Size: 4}) // 1 does not happen
	want(rm.Sized{Job: theJob, Size: 4})
	want(rm.Sized{Job: theJob, Size: 9})
	p.becomes(head.Use{Has: 7})
	want(rm.Sized{Job: theJob, Size: 7})
	close(p.done)
	select {
	case <-over:
	case <-time.After(20 * time.Second):
		t.Error("it does not end")
	}
	for _, n := range []int{4, 1, 9} {
		if got := <-p.sizes; got != n {
			t.Errorf("asked for %d, want %d", got, n)
		}
	}
}

// A list of hosts that is not read yet is not one without slots: the manager hears of
// them before it hears of the job.
func TestDriverWaitsForSlots(t *testing.T) {
	m := &script{told: make(chan rm.Event)}
	s := newDriver("--policy", m)
	read := make(chan struct{})
	s.watch = func(slots func([]int), done <-chan struct{}) {
		<-read
		slots([]int{3, 4})
		<-done
	}
	p := &told{s: s, done: make(chan struct{})}
	p.becomes(head.Use{Has: 2})
	go s.run(p)
	p.becomes(head.Use{Has: 3}) // which is news, too
	close(read)
	for _, want := range []rm.Event{rm.Slots{Total: 7}, rm.Arrived{Job: rm.Job{ID: theJob, Size: 3, Follows: true}}} {
		select {
		case got := <-m.told:
			if got != want {
				t.Errorf("told %+v, want %+v", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("not told %+v", want)
		}
	}
	close(p.done)
	s.wait()
}

// From a host that is in the list no more the processes go, also if the others have as
// many slots as before.
func TestDriverMoves(t *testing.T) {
	m := &script{told: make(chan rm.Event, 10)}
	s := newDriver("--discover", m)
	lists := make(chan []int)
	s.watch = func(slots func([]int), done <-chan struct{}) {
		for {
			select {
			case list := <-lists:
				slots(list)
			case <-done:
				return
			}
		}
	}
	p := &told{s: s, done: make(chan struct{}), sizes: make(chan int, 10)}
	go s.run(p)
	p.becomes(head.Use{Has: 4})
	lists <- []int{2, 2}
	lists <- []int{0, 4}
	p.decides(t, 4)
	close(p.done)
	s.wait()
}

// decides waits for the next size that the job is to have.
func (p *told) decides(t *testing.T, want int) {
	t.Helper()
	select {
	case n := <-p.sizes:
		if n != want {
			t.Errorf("it is to have %d processes, want %d", n, want)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("nothing is decided, want %d processes", want)
	}
}

// Of a lease the manager hears what the program asks for and says of itself, once each, and
// what is not used goes back.
func TestDriverLeases(t *testing.T) {
	m := &script{sizes: []int{0, 0, 0, 5, 0, 0, 7, 0, 0, 2}, told: make(chan rm.Event)}
	s := newDriver("--to", m)
	s.leased, s.waits = true, true
	s.bound = (&changeValues{min: 2}).bound
	p := &told{s: s, done: make(chan struct{}), sizes: make(chan int, 10)}
	go s.run(p)
	want := func(ev rm.Event) {
		t.Helper()
		select {
		case got := <-m.told:
			if c, ok := got.(rm.Told); ok && c.COL.Min == 2 {
				got = rm.Told{Job: c.Job}
			}
			if got != ev {
				t.Errorf("told %+v, want %+v", got, ev)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("not told %+v", ev)
		}
	}
	p.becomes(head.Use{Has: 2})
	want(rm.Arrived{Job: rm.Job{ID: theJob, Size: 2}})
	p.becomes(head.Use{Has: 2, Follows: true})
	want(rm.Followed{Job: theJob, Follows: true})
	s.setCOL([]byte(`{"version":1,"min":3,"max":1}`))
	s.setCOL([]byte(`{"version":1}`))
	want(rm.Told{Job: theJob})
	p.becomes(head.Use{Has: 2, Wants: 6, Least: 4, Follows: true})
	want(rm.Wished{Job: theJob, Size: 6, Min: 4}) // 5 is decided
	want(rm.Sized{Job: theJob, Size: 5})
	p.becomes(head.Use{Has: 3, Follows: true})
	want(rm.Sized{Job: theJob, Size: 3})
	p.becomes(head.Use{Has: 3, Wants: 9, Least: 8, Follows: true})
	want(rm.Wished{Job: theJob, Size: 9, Min: 8}) // 7 is decided, which is too few
	want(rm.Sized{Job: theJob, Size: 3})
	p.becomes(head.Use{Has: 3, Follows: true})
	want(rm.Wished{Job: theJob, Size: 3})
	p.becomes(head.Use{Has: 4, Follows: true})
	want(rm.Sized{Job: theJob, Size: 4}) // 2 is decided
	want(rm.Sized{Job: theJob, Size: 2})
	close(p.done)
	s.wait()
	if n := <-p.sizes; n != 2 {
		t.Errorf("asked for %d", n)
	}
}

// A policy finds the size that is best for the program, of the slots that there are.
func TestDriverObeys(t *testing.T) {
	// Each process more slows it down by a second: 3 are best.
	scaling := filepath.Join(t.TempDir(), "col")
	if err := os.WriteFile(scaling, []byte(`{"version":1,"model":{"kind":"expression","time":"9/p + p"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := parse([]string{"-np", "1", "--slots", "8", "--policy", "ascent", "--col", scaling, "x"}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	s := o.changes.driver
	p := &told{s: s, done: make(chan struct{}), sizes: make(chan int, 10)}
	go s.run(p)
	p.becomes(head.Use{Has: 1})
	p.decides(t, 3)
	close(p.done)
	s.wait()
}

func TestWhoDecides(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("localhost:2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	scaling := filepath.Join(t.TempDir(), "col")
	if err := os.WriteFile(scaling, []byte(`{"version":1,"min":2,"model":{"kind":"amdahl","serial":1,"parallel":9}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"--schedule 10s:+4 x":                                "",
		"--discover echo x":                                  "",
		"--hostfile " + file + " --watch-hostfile x":         "",
		"--schedule 10s:4 x":                                 "not a timetable",
		"--schedule 1:+1 --discover echo x":                  "one of them decides",
		"--watch-hostfile x":                                 "needs a --hostfile",
		"--policy ascent x":                                  "",
		"--policy dmr --discover echo --max 999 x":           "",
		"--policy ascent --col " + scaling + " x":            "",
		"--policy fifo x":                                    "not dmr or ascent",
		"--col " + scaling + " x":                            "for a --policy",
		"--policy dmr --col " + file + " x":                  "col: invalid",
		"--policy dmr --col /no/such/file x":                 "no such file",
		"-np 1 --policy dmr --col " + scaling + " --max 1 x": "min 2 is more than max 1",
		"--policy dmr --schedule 1:+1 x":                     "one of them decides",
		"--manager p --discover echo x":                      "one of them decides",
		"--discover echo --strict-slots x":                   "--strict-slots",
		"-np 2 x : --schedule 10s:+4 y":                      "unknown flag",
	} {
		o, err := parse(strings.Fields(line), func(string) string { return "" })
		switch {
		case want == "" && (err != nil || o.changes.driver == nil):
			t.Errorf("%s: %v", line, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	if o, err := parse([]string{"x"}, func(string) string { return "" }); err != nil || o.changes.driver != nil {
		t.Errorf("nobody decides: %v", err)
	}
}

func TestDiscovery(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []*discovery{
		{flag: "--watch-hostfile", file: file, names: []string{"a", "B"}},
		{flag: "--discover", command: "cat " + file, names: []string{"a", "B"}},
	} {
		write("a slots=2\nb:3 # remark\nother:9\n")
		if n, err := d.read(context.Background()); !slices.Equal(n, []int{2, 3}) || err != nil {
			t.Errorf("%s: %v slots, %v", d.flag, n, err)
		}
		for text, want := range map[string]string{"": "no host in it", "c:4": "none of the job's hosts: a, B", "a:x": "is not a host", "\xff\x00:0": "is not a host"} {
			if write(text); true {
				if n, err := d.read(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q is %v slots, %v, want %q", d.flag, text, n, err, want)
				}
			}
		}
	}
	if n, err := (&discovery{command: "exit 3"}).read(context.Background()); err == nil {
		t.Errorf("a command that fails: %v slots", n)
	}
	// It tells of what is new, and ends.
	write("a:2")
	d := &discovery{flag: "--watch-hostfile", file: file, names: []string{"a", "b"}, every: time.Millisecond}
	done, slots, over := make(chan struct{}), make(chan int), make(chan struct{})
	go func() {
		defer close(over)
		d.watch(func(hosts []int) { slots <- total(hosts) }, done)
	}()
	for _, n := range []int{2, 7, 3} {
		if n != 2 {
			write("a:" + string(rune('0'+n)))
		}
		select {
		case got := <-slots:
			if got != n {
				t.Errorf("told of %d, want %d", got, n)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("not told of %d", n)
		}
	}
	close(done)
	select {
	case <-over:
	case <-time.After(20 * time.Second):
		t.Error("it does not end")
	}
}

// diff returns the events between two views, in the order in which managers expect them.
func TestDriverDiff(t *testing.T) {
	c, d := &rm.COL{}, &rm.COL{}
	for name, x := range map[string]struct {
		last, now view
		want      []rm.Event
	}{
		"nothing":     {view{size: 2, col: c, wish: 3}, view{size: 2, col: c, wish: 3}, nil},
		"slots again": {view{slots: 4, slotLists: 1}, view{slots: 4, slotLists: 2}, []rm.Event{rm.Slots{Total: 4}}},
		"a job with its wish": {view{}, view{slots: 4, slotLists: 1, size: 2, col: c, follows: true, wish: 3, least: 3}, []rm.Event{
			rm.Slots{Total: 4},
			rm.Arrived{Job: rm.Job{ID: theJob, COL: c, Size: 2, Follows: true}},
			rm.Wished{Job: theJob, Size: 3},
		}},
		"an answer":           {view{size: 2}, view{size: 2, answers: 1}, []rm.Event{rm.Sized{Job: theJob, Size: 2}}},
		"another size":        {view{size: 2, wish: 4, least: 3}, view{size: 4}, []rm.Event{rm.Sized{Job: theJob, Size: 4}}},
		"a wish is withdrawn": {view{size: 2, wish: 4, least: 3}, view{size: 2}, []rm.Event{rm.Wished{Job: theJob, Size: 2}}},
		"a COL, and it follows": {view{size: 2, col: c}, view{size: 2, col: d, follows: true}, []rm.Event{
			rm.Told{Job: theJob, COL: d},
			rm.Followed{Job: theJob, Follows: true},
		}},
	} {
		if got := diff(x.last, x.now); !slices.Equal(got, x.want) {
			t.Errorf("%s: %+v, want %+v", name, got, x.want)
		}
	}
}
