// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gompi/launcher/rm"
)

// Lease is a job's end of the connection with its head. For who carries out its
// decisions it is the manager: it passes on what it is told, and decides what the head
// does.
type Lease struct {
	name string
	conn *net.UnixConn
	out  chan []byte

	begins chan struct{} // closed with the first decision
	lost   chan struct{} // closed when there is no head any more

	mu     sync.Mutex
	total  func(int) // is told how many slots the head has, when that changes
	heard  func()    // there may be a decision
	first  *line
	next   []*line // decisions that nobody has taken
	of     uint32  // that was taken and not answered; 0: none
	size   int     // that the head was told last
	wish   int
	why    string
	closed bool
}

// Wants is what a job asks of a head.
type Wants struct {
	Job     string // its number, 16 hexadecimal digits
	Program string
	Start   int           // processes; 0: as many as there are slots
	Limit   time.Duration // how long it runs at most; 0: not known
	COL     *rm.COL       // nil: nothing
}

// State is how a head receives a job.
type State struct {
	Total  int // slots
	Before int // jobs that wait already
}

// Join brings a job into the queue of a head of this user and host.
func Join(name string, w Wants) (*Lease, State, error) {
	c, err := dial(name)
	if err != nil {
		return nil, State{}, err
	}
	l := &Lease{name: name, conn: c, out: make(chan []byte, maxUnread), begins: make(chan struct{}), lost: make(chan struct{})}
	hello, in, err := l.hello(&w)
	if err != nil {
		c.Close()
		return nil, State{}, fmt.Errorf("head %s: %w", name, err)
	}
	go write(c, l.out)
	go l.read(in)
	return l, State{hello.Total, hello.Before}, nil
}

// hello says who the job is, and hears what the head says to that.
func (l *Lease) hello(w *Wants) (*line, *bufio.Scanner, error) {
	l.conn.SetDeadline(time.Now().Add(helloWait))
	first := &line{Version: Version, Job: w.Job, Program: clip(w.Program), Start: w.Start, Limit: w.Limit.Seconds(), COL: colText(w.COL)}
	if _, err := l.conn.Write(first.encode()); err != nil {
		return nil, nil, err
	}
	in := scan(l.conn)
	if !in.Scan() {
		return nil, nil, errors.Join(in.Err(), errors.New("it says nothing"))
	}
	if err := mismatch(in.Bytes(), "it", "this gompirun"); err != nil {
		return nil, nil, err
	}
	a, err := decode(in.Bytes())
	switch {
	case err != nil:
	case a.Event == "refused":
		err = errors.New(a.Text)
	case a.Event != "hello" || a.Version != Version:
		err = fmt.Errorf("event %.40q, version %d", a.Event, a.Version)
	}
	l.conn.SetDeadline(time.Time{})
	return a, in, err
}

// read hears the head until it is gone.
func (l *Lease) read(in *bufio.Scanner) {
	why := ""
	for why == "" && in.Scan() {
		a, err := decode(in.Bytes())
		if err != nil {
			why = err.Error()
			break
		}
		why = l.take(a)
	}
	if why == "" {
		why = fmt.Sprintf("head %s is gone", l.name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.why = why
	close(l.lost)
}

// take takes a line of the head. Why: it is the last.
func (l *Lease) take(a *line) (why string) {
	l.mu.Lock()
	heard, total := l.heard, l.total
	switch a.Event {
	case "decided":
		if a.Size < 1 || a.Of == 0 {
			why = fmt.Sprintf("head %s decides %d processes", l.name, a.Size)
		} else if l.first == nil {
			l.first = a
			close(l.begins)
		} else {
			l.next = append(l.next, a)
		}
		total = nil
	case "slots":
		heard = nil
	case "over", "refused":
		why = fmt.Sprintf("head %s: %s", l.name, a.Text)
	default:
		why = fmt.Sprintf("head %s says %.40q", l.name, a.Event)
	}
	l.mu.Unlock()
	if why == "" && heard != nil {
		heard()
	}
	if why == "" && total != nil {
		total(a.Total)
	}
	return why
}

// Begin waits until the job may begin, and returns with how many processes.
func (l *Lease) Begin(ctx context.Context) (int, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-l.lost:
		return 0, errors.New(l.Why())
	case <-l.begins:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of = l.first.Of
	return l.first.Size, nil
}

// Serve says who is to be told of decisions, and of how many slots the head has.
func (l *Lease) Serve(heard func(), total func(int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard, l.total = heard, total
}

// Lost is closed when the head is gone, or wants the job to end: Why.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Why says why it is lost.
func (l *Lease) Why() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// Dup is another descriptor of the connection: the head counts the slots as taken until
// it is closed, too.
func (l *Lease) Dup() (fd int, err error) {
	raw, err := l.conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	var dupErr error
	err = raw.Control(func(old uintptr) { fd, dupErr = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3) })
	return fd, errors.Join(err, dupErr)
}

// Close gives all slots back, if nobody else has the connection.
func (l *Lease) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.out)
		l.conn.Close()
	}
}

// Step implements rm.ResourceManager, for the one job that there is.
func (l *Lease) Step(_ time.Duration, events ...rm.Event) (list []rm.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := rm.JobID(1)
	for _, ev := range events {
		switch ev := ev.(type) {
		case rm.Arrived:
			l.sized(ev.Job.Size)
			if ev.Job.Follows {
				l.say(&line{Event: "followed", Follows: true})
			}
		case rm.Sized:
			l.sized(ev.Size)
		case rm.Wished:
			if l.wish = ev.Size; ev.Size == l.size {
				l.wish = 0
			}
			l.say(&line{Event: "wished", Size: ev.Size, Min: ev.Min})
		case rm.Told:
			l.say(&line{Event: "told", COL: colText(ev.COL)})
		case rm.Followed:
			l.say(&line{Event: "followed", Follows: ev.Follows})
		}
	}
	for len(l.next) > 0 && l.of == 0 {
		d := l.next[0]
		l.next = l.next[1:]
		l.of = d.Of
		if d.Wished && l.wish == 0 || d.Size == l.size { // what was wished for was withdrawn meanwhile
			l.sized(l.size)
			continue
		}
		list = append(list, rm.Decision{Job: id, Size: d.Size, From: l.size})
	}
	return list
}

// sized says how many processes the job has, in answer to a decision if there is one.
func (l *Lease) sized(n int) {
	if n != l.size {
		l.wish = 0
	}
	l.size = n
	l.say(&line{Event: "sized", Size: n, Of: l.of})
	l.of = 0
}

func (l *Lease) say(a *line) {
	if l.closed {
		return
	}
	select {
	case l.out <- a.encode():
	default: // it does not read
		l.closed = true
		close(l.out)
		l.conn.Close()
	}
}

// Next implements rm.ResourceManager.
func (*Lease) Next() (time.Duration, bool) { return 0, false }
