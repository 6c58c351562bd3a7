// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"gompi/internal/control"
	"gompi/internal/wire"
)

// abortWait is how long Abort waits for the head, whose answer changes
// nothing for a process that gives up.
const abortWait = 2 * time.Second

// Contact returns what it takes to reach p. It waits until p has joined and
// called Announce, so every process announces, if need be no address. The
// caller owns the descriptors; where this process has no room for them the error
// is EMFILE, and a later call may do. If p has left or died, or does so meanwhile,
// the error is a *GoneError; ErrNotFound if there is no such process.
func (c *Client) Contact(p wire.ProcID) (wire.Contact, error) {
	none := wire.Contact{Segment: -1, Bell: -1}
	body, fds, err := c.askFiles(context.Background(), &control.Proc{Kind: control.KindContact, Proc: p})
	if err != nil {
		return none, err
	}
	var m control.ContactBody
	if err := control.Decode(&m, body); err != nil {
		control.CloseFiles(fds[:]...)
		return none, fmt.Errorf("contact %v: %w", p, err)
	}
	if passes && m.C.SameHost && fds[0] < 0 {
		return none, fmt.Errorf("this process can open no more files (ulimit -n): %w", syscall.EMFILE)
	}
	m.C.Segment, m.C.Bell = fds[0], fds[1]
	return m.C, nil
}

// Announce tells the head the TCP addresses ("ip:port", best first, at most
// MaxAddrs) at which this process can be reached; none is fine. Until the
// first call nobody gets a Contact for this process. A later call replaces
// the addresses for Contacts to come. One way.
func (c *Client) Announce(addrs []string) error {
	if len(addrs) > control.MaxAddrs {
		return fmt.Errorf("announce %d addresses, at most %d allowed", len(addrs), control.MaxAddrs)
	}
	for _, a := range addrs {
		if len(a) > control.MaxAddr {
			return fmt.Errorf("announce address %.40q... of %d bytes, at most %d allowed", a, len(a), control.MaxAddr)
		}
	}
	return c.tell(&control.Announce{Addrs: addrs})
}

// Watch asks to be told of the end of each member, also if it has ended
// already: EvGone if it left in order or never joined, else EvDied. The end of
// a process is told once for each Watch that came after the last time, so
// whoever keeps no record of it may ask again. Of a member that is no process of
// the job EvNone is told, of few at a time. One way.
func (c *Client) Watch(m wire.Members) error {
	if err := checkMembers(m); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	return c.tell(&control.Members{Kind: control.KindWatch, Members: m})
}

func checkMembers(m wire.Members) error {
	if n := len(m.Ranges()); n > control.MaxRanges {
		return control.Refused("%d ranges of processes, at most %d allowed", n, control.MaxRanges)
	}
	if m.Len() > control.MaxMembers {
		return control.Refused("%d processes, at most %d allowed", m.Len(), control.MaxMembers)
	}
	if !m.Check() {
		return control.Refused("a process stands twice among %d", m.Len())
	}
	return nil
}

// Lookup returns the set with this name: mpi://WORLD, mpi://SELF,
// mpi://PARENT of this process, or gompi://JOB/NUMBER. Aliases come with the
// number of the set they stand for. ErrNotFound if there is none, ErrSetGone if nobody
// holds it any more: see ReleaseSet.
func (c *Client) Lookup(uri string) (wire.Set, error) {
	if len(uri) > control.MaxName {
		return wire.Set{}, control.NotFound("process set with a name of %d bytes", len(uri))
	}
	var b control.DescribeBody
	err := c.Ask(context.Background(), &control.Text{Kind: control.KindLookup, Text: uri}, &b)
	return b.Set, err
}

// DefineSet makes a new set of processes of this job, in this order. Each
// call makes another one, also for the same members. It lives until everybody
// who was given it has released it, so whoever tells others of its name keeps it
// until they have looked it up.
func (c *Client) DefineSet(m wire.Members) (wire.Set, error) {
	if err := checkMembers(m); err != nil {
		return wire.Set{}, fmt.Errorf("define set: %w", err)
	}
	return c.askSet(context.Background(), &control.Members{Kind: control.KindDefine, Members: m})
}

// ReleaseSet tells that this process needs a set no more: once for each Lookup,
// DefineSet and Spawn that returned it. A set that nobody holds any more is
// forgotten by the job. A process holds its WORLD, SELF and PARENT until it
// finalizes, and what it never releases until then. One way.
func (c *Client) ReleaseSet(number uint32) error { return c.tell(&control.Release{Number: number}) }

func (c *Client) askSet(ctx context.Context, m control.Message) (wire.Set, error) {
	body, err := c.ask(ctx, m)
	if err != nil {
		return wire.Set{}, err
	}
	var b control.SetBody
	if err := control.Decode(&b, body); err != nil {
		return wire.Set{}, err
	}
	return b.S, nil
}

// Put stores a value for every process of the job; an older value is replaced.
// On return it is there, until it is deleted. Val may be reused then.
func (c *Client) Put(key string, val []byte) error {
	if key == "" || len(key) > control.MaxKey || len(val) > control.MaxValue {
		return control.Refused("put key of %d bytes (1 to %d) with value of %d bytes (at most %d)", len(key), control.MaxKey, len(val), control.MaxValue)
	}
	_, err := c.ask(context.Background(), &control.Put{Key: key, Val: val})
	return err
}

// Get returns the value of a key; the caller owns it. If there is none yet,
// the error is ErrNotFound, or with wait Get waits for it until ctx is done,
// the job ends (ErrEnding), or no other process is left that could Put it (a
// *GoneError for the last one).
func (c *Client) Get(ctx context.Context, key string, wait bool) ([]byte, error) {
	if key == "" || len(key) > control.MaxKey {
		return nil, control.NotFound("key of %d bytes (1 to %d)", len(key), control.MaxKey)
	}
	body, err := c.ask(ctx, &control.Get{Key: key, Wait: wait})
	if err != nil {
		return nil, err
	}
	var m control.ValueBody
	if err := control.Decode(&m, body); err != nil {
		return nil, err
	}
	return m.Val, nil
}

// Delete removes a key and its value from the store; ErrNotFound if there is
// none.
func (c *Client) Delete(key string) error {
	if key == "" || len(key) > control.MaxKey {
		return control.NotFound("key of %d bytes (1 to %d)", len(key), control.MaxKey)
	}
	_, err := c.ask(context.Background(), &control.Text{Kind: control.KindDelete, Text: key})
	return err
}

// Fence returns when every member has called it with the same members in the
// same order; the caller must be one. If a member leaves or dies before, all
// get a *GoneError. After ctx is done the fence stays open for the others
// until the caller comes again; it may also have just been completed.
func (c *Client) Fence(ctx context.Context, m wire.Members) error {
	if err := checkMembers(m); err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	_, err := c.ask(ctx, &control.Members{Kind: control.KindFence, Members: m})
	return err
}

// Common returns memory of n bytes for the members of a communicator, or for
// those of them that are on this host: zeroed at first, with pages in the first of
// them, and the same for all that name the same context, members and lengths. The
// caller is one of these, asks once, and may touch it until LeaveCommon. have are
// the arenas, as bits, whose file it needs no more; it owns the one of another.
func (c *Client) Common(id wire.ContextID, m wire.Members, n, first int, have uint64) (wire.Extent, error) {
	none := wire.Extent{File: -1}
	if err := checkMembers(m); err != nil {
		return none, fmt.Errorf("common memory: %w", err)
	}
	body, fds, err := c.askFiles(context.Background(), &control.Common{ID: id, Members: m, Bytes: int64(n), First: int64(first), Have: have})
	if err != nil {
		return none, err
	}
	var b control.CommonBody
	if err := control.Decode(&b, body); err != nil {
		control.CloseFiles(fds[:]...)
		return none, fmt.Errorf("common memory: %w", err)
	}
	control.CloseFiles(fds[1:]...) // the same once more
	if b.X.File = fds[0]; b.X.Arena >= wire.MaxArenas || b.X.File < 0 && have>>b.X.Arena&1 == 0 {
		_ = c.LeaveCommon(b.X) // who has no connection any more holds nothing
		return none, fmt.Errorf("this process can open no more files (ulimit -n): %w", syscall.EMFILE)
	}
	return b.X, nil
}

// LeaveCommon tells that the caller, which was given common memory, does not touch
// it any more. One way.
func (c *Client) LeaveCommon(x wire.Extent) error {
	return c.tell(&control.Uncommon{Arena: x.Arena, Off: x.Off})
}

// Spawn starts n more processes of this job with the command line argv, or
// the caller's own if argv is empty. It returns their set, which is their
// world, when they have been started, not necessarily joined; their parent is
// the caller's mpi://SELF. The caller holds the set: see ReleaseSet.
func (c *Client) Spawn(ctx context.Context, argv []string, n int) (wire.Set, error) {
	if n < 1 || n > control.MaxSpawn {
		return wire.Set{}, control.Refused("spawn of %d processes (1 to %d)", n, control.MaxSpawn)
	}
	b, err := c.SpawnAll(ctx, &control.Spawn{Parts: []control.SpawnPart{{N: n, Argv: argv}}})
	return b.World, err
}

// SpawnAll starts more processes of this job, which are a world of their own. Where
// they could not be started the answer says of which command that was. While a change is
// undecided that the caller or one of the parents has a part in the head waits with it,
// but not for ever: ErrUndecided. When ctx is done they may still be starting, unless
// the head was to wait until they have joined. The caller holds the set World: see ReleaseSet.
func (c *Client) SpawnAll(ctx context.Context, m *control.Spawn) (control.SpawnBody, error) {
	var b control.SpawnBody
	asked := control.Encode(m)
	if n := len(asked); n > control.KindSpawn.BodyLimit() {
		return b, control.Refused("spawn of %d commands with %d bytes, at most %d allowed", len(m.Parts), n, control.KindSpawn.BodyLimit())
	}
	if err := control.Decode(new(control.Spawn), asked); err != nil { // the head would take it for a broken protocol
		return b, control.Refused("spawn: %v", err)
	}
	body, err := c.ask(ctx, m)
	if err == nil {
		err = control.Decode(&b, body)
	}
	if err == nil && b.Text != "" {
		err = control.Refused("%s", b.Text)
	}
	return b, err
}

// Abort ends the job. The head knows when it returns, unless the head does not
// answer within 2 s. The caller should exit.
func (c *Client) Abort(code int, msg string) error {
	ctx, cancel := context.WithTimeout(context.Background(), abortWait)
	defer cancel()
	_, err := c.ask(ctx, &control.Abort{Code: code, Text: msg})
	return err
}

// Finalize tells that this process leaves in order; when it returns the head
// knows, and the exit that follows is no death. Afterwards only Abort and
// Close make sense; no events but the end of the connection come any more.
func (c *Client) Finalize() error {
	_, err := c.ask(context.Background(), &control.Empty{Kind: control.KindFinalize})
	return err
}

// Dead acknowledges the EvDied or EvGone of p: nothing of this process touches
// p's memory any more, and p's pid may be used again. One way.
func (c *Client) Dead(p wire.ProcID) error {
	return c.tell(&control.Proc{Kind: control.KindDead, Proc: p})
}

// Cut tells p, if it lives, that this process cannot talk to it, and why: EvCut.
// Each call is told, so it also wakes p. One way.
func (c *Client) Cut(p wire.ProcID, why string) error {
	return c.tell(&control.Cut{Proc: p, Text: why})
}

// Ping asks whether p takes part in the job: an EvPong with this id if it does,
// else its end is told to those who watch it. For this process itself the head
// answers, and for one that has not joined yet. One way.
func (c *Client) Ping(p wire.ProcID, id uint64) error {
	return c.tell(&control.Ping{Kind: control.KindPing, Proc: p, ID: id})
}

// Pong answers an EvPing of p. One way.
func (c *Client) Pong(p wire.ProcID, id uint64) error {
	return c.tell(&control.Ping{Kind: control.KindPong, Proc: p, ID: id})
}

// Stacks answers an EvStacks. Each text is cut at MaxReport bytes. One way.
func (c *Client) Stacks(m control.Stacks) error {
	m.Queues, m.Stacks = m.Queues[:min(len(m.Queues), control.MaxReport)], m.Stacks[:min(len(m.Stacks), control.MaxReport)]
	return c.tell(&m)
}
