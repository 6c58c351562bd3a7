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

// Module is the part of a process in a malleable program. Init makes it, and Finalize ends it.
// One goroutine at a time calls it; the module has one goroutine of its own, prepareLoop.
type Module struct {
	// Fixed by Init. w follows the set; it is nil on a newcomer that has not committed.
	ctx     context.Context
	s       *sessions.Session
	w       *sessions.Watcher
	process *mpi.Process
	user    UserFunc
	role    Role
	verbose bool

	// The configuration: see SetConfig. inputs are those of Auto. config is written with mu
	// held.
	config   Config
	settings []Setting
	inputs   inputs

	// The current ranks. comm ends with the next commit if the module owns it; moduleComm has
	// the same ranks and is made when it is needed. multiHost says that a world that is known
	// here has processes on several hosts.
	set        string
	comm       *mpi.Comm
	ownsComm   bool
	moduleComm *mpi.Comm
	multiHost  bool

	// Counts of Checkpoint. iteration is the number of the next one, calls counts those since
	// Init. The number on the page is larger than iteration by waited: by one for each change
	// that was waited for.
	iteration, waited int
	calls             int

	// The registrations. arrays and edition are written with mu held. edition counts edits on
	// all ranks since the beginning, edited says that this process has taken part in one.
	// published says that the store of the set has the registry, and changes may be prepared.
	// keptMemory is that of arrays that were unregistered.
	arrays     []*array
	edition    int
	edited     bool
	published  bool
	keptMemory []*hostmem.Memory

	// Requests of this process. wanted is the size to ask for at the next Checkpoint, or 0;
	// request is the last one, and timed that of the last commit, until its times are read.
	wanted         int
	request, timed *sizeRequest

	// The change that was delivered, in its user phase. deferred is an error that the next
	// Checkpoint without a delivery returns.
	current   *reconfiguration
	deferred  error
	times     Times
	finalized bool

	// Between Checkpoint and the goroutine. polled are requests that Checkpoint tests.
	// checkpointWaits tells the goroutine that a Checkpoint waits for them. The program holds
	// computing except while it checks in: see takeSnapshots.
	polled          atomic.Pointer[polled]
	checkpointWaits chan struct{}
	computing       sync.Mutex

	// Tracking of writes. The goroutine opens the tracker, or learns why there is none.
	disarmMu sync.Mutex
	tracker  *dirty.Tracker
	trackErr error

	// The life of goroutines of the module.
	life       context.Context
	cancelLife context.CancelFunc
	done       sync.WaitGroup

	// What follows is guarded by mu.
	mu sync.Mutex
	// publishedGate is closed while changes may be prepared. news is closed when coming is
	// set.
	publishedGate chan struct{}
	news          chan struct{}
	// coming is the last change that the goroutine has seen, and that is not over;
	// comingSince is when it was seen. prepared is its reconfiguration, until the delivery.
	coming      *sessions.Change
	comingSince time.Time
	prepared    *reconfiguration
	// prepareErr is why a change could not be prepared: the next Checkpoint returns it. A
	// Checkpoint that waits sets onPrepareErr, to be woken.
	prepareErr error
	// preparing is closed when the change that is coming is prepared, or has failed to be.
	preparing    chan struct{}
	onPrepareErr func()
	// publication is the constant data that others may read. endedWatches are those of
	// snapshots that were released. retired is memory that the program may still have.
	publication  *publication
	endedWatches []dirty.Watch
	retired      []block
}

// ErrChanging is the error of a call that has to wait until a change is over.
var ErrChanging = errors.New("a change is under way")

var errFinalized = errors.New("the module was finalized")

// options are the options of the watch, the same on all members.
var options = sessions.Options{Prepare: true, Hold: true}

// Init makes a process part of a malleable program. All processes of the beginning call it, with
// the world that they form; their role is Source, and they register their data next. A process
// that was started for a change calls it, too; its role is Target. There Init returns when the
// change is committed and all data has come: Iteration and Comm are those to go on with. If the
// change does not happen Init returns ErrRolledBack, which the main function returns.
//
// The configuration of rank 0 holds on all, newcomers too. user may be nil. It is called once in
// each Checkpoint of the user phase, until it calls Resume, and as often on newcomers. Finalize
// must follow. Collective over the processes of the beginning.
//
// MAM_Init of MaM.
func Init(ctx context.Context, world *mpi.Comm, config Config, user UserFunc) (*Module, Role, error) {
	const op = "Init"
	m := &Module{
		ctx:             ctx,
		user:            user,
		comm:            world,
		process:         world.Process(),
		publishedGate:   make(chan struct{}),
		news:            make(chan struct{}),
		checkpointWaits: make(chan struct{}, 1),
	}
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
		m.wanted = m.config.Targets
	}
	if m.s, err = sessions.Open(ctx); err != nil {
		return nil, Source, err
	}
	m.life, m.cancelLife = context.WithCancel(ctx)
	if c != nil {
		m.role = Target
		err = m.joinChange(c)
	} else {
		m.w, err = sessions.Watch(ctx, "gompi://main", options)
	}
	if err == nil {
		m.set, err = m.w.Set()
	}
	if err != nil {
		return nil, m.role, errors.Join(err, m.Finalize())
	}
	m.done.Go(func() { m.prepareLoop(m.w) })
	return m, m.role, nil
}

// configure gives all ranks the configuration of rank 0. A configuration that is refused changes
// nothing.
func (m *Module) configure(op string, comm *mpi.Comm, code Config) error {
	var b []byte
	var bad error
	x := rank0Config{}
	if comm.Rank() == 0 {
		if x.Config, x.Settings, bad = settle(code, comm.Process().Core().Process().Setting, os.Getenv); bad == nil {
			if bad = x.Config.checkSupported(); bad == nil {
				x.Inputs, bad = findInputs(comm)
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
	case n <= 0 || n > maxSettings:
		return m.refuse(op, mpi.ErrArg, errors.New("rank 0 has no configuration"))
	}
	if comm.Rank() == 0 {
		m.printSettings(x.Settings)
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

// rank0Config is what rank 0 broadcasts of the configuration.
type rank0Config struct {
	Config   Config
	Settings []Setting
	Inputs   inputs
}

const maxSettings = 1 << 16 // bytes

// checkSupported returns an error for what the module cannot do.
func (c *Config) checkSupported() error {
	if c.Spawn&SpawnInter != 0 && c.Process == Baseline {
		return fmt.Errorf("spawn %v with process baseline: sources and targets have one communicator of all", SpawnInter)
	}
	return nil
}

// printSettings prints the settings, and what was changed of them, if gompirun was asked to be
// verbose.
func (m *Module) printSettings(list []Setting, why ...string) {
	if !m.verbose || m.comm.Rank() != 0 {
		return
	}
	var text []string
	for _, s := range list {
		text = append(text, s.String())
	}
	fmt.Fprintln(os.Stderr, "mam:", strings.Join(append(text, why...), ", "))
}

// printVerbose prints a line on rank 0 if gompirun was asked to be verbose.
func (m *Module) printVerbose(rank int, text string) {
	if m.verbose && rank == 0 {
		fmt.Fprintln(os.Stderr, "mam:", text)
	}
}

// Finalize ends the module: the set takes no more changes. The data stays the program's. The
// first process that calls it ends changes that were not delivered yet. Local.
//
// MAM_Finalize of MaM, which asks the program to abort where processes have left.
func (m *Module) Finalize() error {
	if m.finalized {
		return nil
	}
	m.finalized = true
	m.computing.Unlock()
	m.cancelLife()
	var err error
	if m.current != nil {
		m.current.close()
	}
	if m.w != nil {
		err = m.w.Close()
	}
	m.done.Wait()
	if m.tracker != nil {
		err = errors.Join(err, m.tracker.Close())
	}
	m.withdrawConstant()
	err = errors.Join(err, m.freeAll())
	if m.moduleComm != nil {
		err = errors.Join(err, m.moduleComm.Free())
	}
	return errors.Join(err, m.s.Close())
}

// Comm returns the communicator of the current ranks: world, or that of the last commit. The next
// commit frees it. Local.
func (m *Module) Comm() *mpi.Comm { return m.comm }

// Role returns the role that Init has returned. Local.
func (m *Module) Role() Role { return m.role }

// Iteration returns the number of the next Checkpoint, from 0 on. It is the same on all ranks
// that are equally far, newcomers too. Local.
func (m *Module) Iteration() int { return m.iteration }

// Settings returns the configuration of this process, and where each field comes from. Local.
func (m *Module) Settings() []Setting { return slices.Clone(m.settings) }

// Times returns the times of the last change that was committed. Local, except on the rank that
// has asked for the change: there it asks the head once.
func (m *Module) Times() Times {
	if m.timed != nil {
		m.times.RMS, m.times.Spawn = m.timed.times(m.ctx, m.set)
		m.timed = nil
	}
	return m.times
}

// State returns how far a change is, without communication. Local.
func (m *Module) State() State {
	switch {
	case m == nil || m.s == nil || m.finalized:
		return Unreserved
	case m.current != nil:
		return UserPending
	case m.comingNow() != nil:
		return Pending
	}
	return NotStarted
}

// SetTarget asks for a change to n ranks, as gompictl resize =n does, at the next Checkpoint of
// rank 0. The number of rank 0 holds. Changes happen one after the other; of several numbers that
// wait the last one stays. The current number is no change. A change that is under way is asked
// for again if it is rolled back. If the request is refused Checkpoint returns the error. Local.
//
// MAM_Set_target_number of MaM.
func (m *Module) SetTarget(n int) error {
	if err := m.open("SetTarget"); err != nil {
		return err
	}
	if n < 1 {
		return m.refuse("SetTarget", mpi.ErrArg, fmt.Errorf("%d ranks", n))
	}
	m.wanted = n
	return nil
}

// comingNow returns the change that is coming and not over; nil: there is none.
func (m *Module) comingNow() *sessions.Change {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isComing() {
		return nil
	}
	return m.coming
}

// isComing reports whether a change is coming; mu is held.
func (m *Module) isComing() bool {
	if m.coming != nil && m.coming.Over() {
		m.coming = nil
	}
	return m.coming != nil
}

func (m *Module) open(op string) error {
	if m.finalized {
		return m.refuse(op, mpi.ErrFinalized, errFinalized)
	}
	return nil
}

// refuse returns the error of a call.
func (m *Module) refuse(op string, class mpi.Class, why error) error {
	return &mpi.Error{Class: class, Op: "mam." + op, Peer: mpi.ProcNull, Tag: -1, Got: -1, Want: -1, Err: why}
}
