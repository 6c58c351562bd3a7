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

// Lease is a job's end of the connection with its head. To the job's driver it is a
// resource manager: it passes events on to the head, and returns the head's decisions.
type Lease struct {
	name string
	conn *net.UnixConn
	out  chan []byte

	begins chan struct{} // closed with the first decision
	lost   chan struct{} // closed when the head is gone

	mu     sync.Mutex
	total  func(int) // called with the slots of the head when they change
	heard  func()    // called when there may be a decision
	first  *line
	next   []*line // decisions that Step has not returned
	of     uint32  // the decision under way; 0: none
	size   int     // the size reported last
	wish   int
	why    string
	closed bool
}

// Wants is a job's request to a head.
type Wants struct {
	Job     string // number of the job, 16 hexadecimal digits
	Program string
	Start   int           // processes; 0: all slots
	Limit   time.Duration // bound of its run time; 0: not known
	COL     *rm.COL       // nil: not known
}

// State is a head's answer to a job.
type State struct {
	Total  int // slots
	Before int // number of jobs that wait already
}

// Join puts a job into the queue of a head of this user and host.
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

// hello sends the job's first line, and returns the head's answer.
func (l *Lease) hello(w *Wants) (*line, *bufio.Scanner, error) {
	l.conn.SetDeadline(time.Now().Add(helloWait))
	first := &line{Version: Version, Job: w.Job, Program: clip(w.Program), Start: w.Start, Limit: w.Limit.Seconds(), COL: colText(w.COL)}
	if _, err := l.conn.Write(first.encode()); err != nil {
		return nil, nil, err
	}
	in := scan(l.conn)
	if !in.Scan() {
		return nil, nil, errors.Join(in.Err(), errors.New("it does not answer"))
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

// read takes lines of the head until it is gone.
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

// take handles a line of the head. why is not empty if it is the last.
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

// Begin waits until the job may begin, and returns its number of processes.
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

// Serve sets the callbacks for decisions, and for the number of slots of the head.
func (l *Lease) Serve(heard func(), total func(int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard, l.total = heard, total
}

// Lost is closed when the head is gone, or wants the job to end; Why returns the reason.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Why returns the reason why the lease is lost.
func (l *Lease) Why() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// Dup returns another descriptor of the connection: the slots stay taken until it is
// closed too.
func (l *Lease) Dup() (fd int, err error) {
	raw, err := l.conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	var dupErr error
	err = raw.Control(func(old uintptr) { fd, dupErr = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3) })
	return fd, errors.Join(err, dupErr)
}

// Close gives all slots back, unless another process has the connection.
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
		if d.Wished && l.wish == 0 || d.Size == l.size { // the wish was withdrawn meanwhile
			l.sized(l.size)
			continue
		}
		list = append(list, rm.Decision{Job: id, Size: d.Size, From: l.size})
	}
	return list
}

// sized reports the size of the job, as the answer to the decision under way if there is
// one.
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
	default: // the head does not read
		l.closed = true
		close(l.out)
		l.conn.Close()
	}
}

// Next implements rm.ResourceManager.
func (*Lease) Next() (time.Duration, bool) { return 0, false }
