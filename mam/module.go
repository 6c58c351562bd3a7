// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gompi/internal/control/hostmem"
	"gompi/internal/host/dirty"
	"gompi/mpi"
	"gompi/sessions"
)

// Module is what a process knows of its part in a malleable program. One goroutine at a
// time uses it.
type Module struct {
	ctx      context.Context // of Init
	s        *sessions.Session
	w        *sessions.Watcher // nil: a newcomer that has not committed
	user     UserFunc
	config   Config
	settings []Setting
	inputs   inputs // of Auto
	verbose  bool

	role  Role
	spans bool      // a world that is known here has processes on several hosts
	comm  *mpi.Comm // of the ranks there are now
	made  bool      // comm is of a commit, and ends with the next one
	own   *mpi.Comm // of the same ranks, for the module; nil: it was not needed yet
	set   string    // that is followed
	calls int       // of Checkpoint, since Init
	// iteration is that of the next Checkpoint, and ahead by how much its number on the
	// page is larger: once for each change that was waited for.
	iteration, ahead int

	arrays   []*array          // written with mu held, as are config and edition
	edition  int               // how often something was changed between changes, since the beginning
	changed  bool              // it was on this process
	admitted bool              // the store of the set tells what there is, and changes may be prepared
	kept     []*hostmem.Memory // of arrays that were unregistered
	target   int               // that is to be asked for at the next Checkpoint; 0: none
	wish     *wish             // that was asked for last; nil: nothing was
	asked    *wish             // the last one when times were taken
	unsaid   error             // of a call that was handed a change; the next one says it

	adopting *adoption // that is handed out, in its user phase
	times    Times
	over     bool

	tested atomic.Pointer[tested] // that Checkpoint tests; nil: nothing
	waits  chan struct{}          // a Checkpoint waits for what it would test

	// computing is held by the program, but while it is checking in: see lendAll.
	computing sync.Mutex
	process   *mpi.Process
	disarming sync.Mutex
	tracker   *dirty.Tracker // of the goroutine; nil: not yet, or
	untracked error          // why there is none

	life context.Context // of the goroutine that prepares changes
	end  context.CancelFunc
	done sync.WaitGroup

	mu sync.Mutex
	// What follows is guarded by mu.
	gate    chan struct{}    // closed when changes are admitted
	news    chan struct{}    // closed when coming is set
	coming  *sessions.Change // the last one that the goroutine has seen; nil: it is over
	since   time.Time        // when
	ready   *adoption        // of coming, if something has moved before it is handed out
	shown   *shown           // what others may read; nil: nothing
	ended   []dirty.Watch    // of loans that are over
	left    []block          // that the program may still have
	trouble error            // why a change could not be prepared, to be said by Checkpoint
	alarm   func()           // called when trouble is set; nil: nobody waits
}

// ErrChanging is that of a call which has to wait until a change is over.
var ErrChanging = errors.New("a change is under way")

var errOver = errors.New("the module was finalized")

// options are those of the watch, the same on all members.
var options = sessions.Options{Prepare: true, Hold: true}

// Init makes a process a part of a malleable program. On the processes of the beginning
// the role is Source: world is all of them, and the program registers its data. On one
// that was started for a change it is Target: Init returns when that is committed, all
// data has come, and Iteration and Comm are those to go on with; ErrRolledBack of a change
// that does not happen, which the main function returns. The configuration of rank 0
// holds on all, newcomers too. user, which may be nil, is called in each Checkpoint of the user phase, once,
// until it says Resume; on newcomers as often. Finalize must follow. Collective over the
// processes of the beginning.
//
// MAM_Init of MaM.
func Init(ctx context.Context, world *mpi.Comm, config Config, user UserFunc) (*Module, Role, error) {
	const op = "Init"
	m := &Module{ctx: ctx, user: user, comm: world, process: world.Process(), gate: make(chan struct{}), news: make(chan struct{}), waits: make(chan struct{}, 1)}
	m.computing.Lock()
	m.verbose = world.Process().Core().Process().Setting("GOMPI_VERBOSE") == "1"
	c, err := sessions.Joined(ctx)
	if err != nil {
		return nil, Source, err
	}
	if c == nil {
		if err := m.configure(op, world, config); err != nil {
			return nil, Source, err
		}
		m.target = m.config.Targets
	}
	if m.s, err = sessions.Open(ctx); err != nil {
		return nil, Source, err
	}
	m.life, m.end = context.WithCancel(ctx)
	if c != nil {
		m.role = Target
		err = m.join(c)
	} else {
		m.w, err = sessions.Watch(ctx, "gompi://main", options)
	}
	if err == nil {
		m.set, err = m.w.Set()
	}
	if err != nil {
		return nil, m.role, errors.Join(err, m.Finalize())
	}
	m.done.Go(func() { m.prepareAll(m.w) })
	return m, m.role, nil
}

// configure gives all ranks the configuration of rank 0; one that is refused changes
// nothing.
func (m *Module) configure(op string, comm *mpi.Comm, code Config) error {
	var b []byte
	var bad error
	x := chosen{}
	if comm.Rank() == 0 {
		if x.Config, x.Settings, bad = settle(code, comm.Process().Core().Process().Setting, os.Getenv); bad == nil {
			if bad = x.Config.there(); bad == nil {
				x.Inputs, bad = look(comm)
			}
			if bad == nil {
				b, bad = json.Marshal(&x)
			}
		}
	}
	n, err := mpi.BcastOne(comm, len(b), 0)
	switch {
	case err != nil:
		return err
	case bad != nil:
		return m.refuse(op, mpi.ErrArg, bad)
	case n <= 0 || n > mostSettings:
		return m.refuse(op, mpi.ErrArg, errors.New("rank 0 has no configuration"))
	}
	if comm.Rank() == 0 {
		m.say(x.Settings)
	} else {
		b = make([]byte, n)
	}
	if err := mpi.Bcast(comm, b, 0); err != nil {
		return err
	}
	if comm.Rank() != 0 {
		err := json.Unmarshal(b, &x)
		if err == nil {
			err = errors.Join(x.Config.check(), x.Inputs.check())
		}
		if err != nil {
			return m.refuse(op, mpi.ErrArg, fmt.Errorf("the configuration of rank 0: %w", err))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.config, m.settings, m.inputs = x.Config, x.Settings, x.Inputs
	return nil
}

// chosen is what rank 0 tells of the configuration.
type chosen struct {
	Config   Config
	Settings []Setting
	Inputs   inputs
}

const mostSettings = 1 << 16 // bytes of it

// there says what of a configuration the module cannot do.
func (c *Config) there() error {
	if c.Spawn&SpawnInter != 0 && c.Process == Baseline {
		return fmt.Errorf("spawn %v with process baseline: sources and targets have one communicator of all", SpawnInter)
	}
	return nil
}

// say prints what has been chosen, and what was changed of it, if gompirun was asked to be
// verbose.
func (m *Module) say(list []Setting, why ...string) {
	if !m.verbose || m.comm.Rank() != 0 {
		return
	}
	var text []string
	for _, s := range list {
		text = append(text, s.String())
	}
	fmt.Fprintln(os.Stderr, "mam:", strings.Join(append(text, why...), ", "))
}

// Finalize ends the module: the set takes no more changes. The data stays the program's.
// Whoever calls it first ends changes that nobody was handed yet. Local.
//
// MAM_Finalize of MaM, which asks the program to abort where processes have left.
func (m *Module) Finalize() error {
	if m.over {
		return nil
	}
	m.over = true
	m.computing.Unlock()
	m.end()
	var err error
	if m.adopting != nil {
		m.adopting.close()
	}
	if m.w != nil {
		err = m.w.Close()
	}
	m.done.Wait()
	if m.tracker != nil {
		err = errors.Join(err, m.tracker.Close())
	}
	m.hide()
	err = errors.Join(err, m.freeAll())
	if m.own != nil {
		err = errors.Join(err, m.own.Free())
	}
	return errors.Join(err, m.s.Close())
}

// Comm is the communicator to go on with: world, or that of the last commit, until the
// next one, which frees it. Local.
func (m *Module) Comm() *mpi.Comm { return m.comm }

// Role is what Init has returned. Local.
func (m *Module) Role() Role { return m.role }

// Iteration is the number of the next Checkpoint, from 0 on: how often it was called. It
// is the same on all ranks that are as far, newcomers too. Local.
func (m *Module) Iteration() int { return m.iteration }

// Settings are the configuration that holds on this process, and who has said it. Local.
func (m *Module) Settings() []Setting { return slices.Clone(m.settings) }

// Times are those of the last change that was committed. Local, but on who has asked for
// it, which asks the head once.
func (m *Module) Times() Times {
	if m.asked != nil {
		m.times.RMS, m.times.Spawn = m.asked.spans(m.ctx, m.set)
		m.asked = nil
	}
	return m.times
}

// State is how far a change is, without asking anybody. Local.
func (m *Module) State() State {
	switch {
	case m == nil || m.s == nil || m.over:
		return Unreserved
	case m.adopting != nil:
		return UserPending
	case m.comingNow() != nil:
		return Pending
	}
	return NotStarted
}

// SetTarget asks for a change to so many ranks, as gompictl resize =n does: at the next
// Checkpoint of rank 0, whose number holds. Changes are one after the other; of several
// numbers that wait the last one stays. A number that is there already is no change. One that
// is under way is asked for again if that is rolled back. If the request is refused, the
// Checkpoint says so. Local.
//
// MAM_Set_target_number of MaM.
func (m *Module) SetTarget(n int) error {
	if err := m.open("SetTarget"); err != nil {
		return err
	}
	if n < 1 {
		return m.refuse("SetTarget", mpi.ErrArg, fmt.Errorf("%d ranks", n))
	}
	m.target = n
	return nil
}

// comingNow is a change that is coming and not over; nil: there is none.
func (m *Module) comingNow() *sessions.Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isComing() {
		return nil
	}
	return m.coming
}

// isComing reports whether a change is; mu is held.
func (m *Module) isComing() bool {
	if m.coming != nil && m.coming.Over() {
		m.coming = nil
	}
	return m.coming != nil
}

func (m *Module) open(op string) error {
	if m.over {
		return m.refuse(op, mpi.ErrFinalized, errOver)
	}
	return nil
}

// refuse is an error of a call.
func (m *Module) refuse(op string, class mpi.Class, why error) error {
	return &mpi.Error{Class: class, Op: "mam." + op, Peer: mpi.ProcNull, Tag: -1, Got: -1, Want: -1, Err: why}
}
