// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// abortWait is how long Abort waits for the head. The answer changes nothing for a process that
// gives up.
const abortWait = 2 * time.Second

// Contact returns what a process needs to reach p. It waits until p has joined and called Announce,
// so that every process has to announce, even if it has no address. The caller owns the descriptors.
// The error is a *GoneError if p has finalized or died, or does so meanwhile, and ErrNotFound if
// there is no such process. It is EMFILE if this process has no room for the descriptors; a later
// call may succeed.
func (c *Client) Contact(p wire.ProcID) (wire.Contact, error) {
	none := wire.Contact{Segment: -1, Bell: -1}
	body, fds, err := c.askFiles(context.Background(), &protocol.Proc{Kind: protocol.KindContact, Proc: p})
	if err != nil {
		return none, err
	}
	var m protocol.ContactBody
	if err := protocol.Decode(&m, body); err != nil {
		protocol.CloseFiles(fds[:]...)
		return none, fmt.Errorf("contact %v: %w", p, err)
	}
	if passes && m.C.SameHost && fds[0] < 0 {
		return none, fmt.Errorf("this process can open no more files (ulimit -n): %w", syscall.EMFILE)
	}
	m.C.Segment, m.C.Bell = fds[0], fds[1]
	return m.C, nil
}

// Announce tells the head the TCP addresses ("ip:port", best first, at most MaxAddrs, possibly none)
// at which this process can be reached. No process gets a Contact for this one before the first
// call. A later call replaces the addresses for later Contacts. One way.
func (c *Client) Announce(addrs []string) error {
	if len(addrs) > protocol.MaxAddrs {
		return fmt.Errorf("announce %d addresses, at most %d allowed", len(addrs), protocol.MaxAddrs)
	}
	for _, a := range addrs {
		if len(a) > protocol.MaxAddr {
			return fmt.Errorf("announce address %.40q... of %d bytes, at most %d allowed", a, len(a), protocol.MaxAddr)
		}
	}
	return c.tell(&protocol.Announce{Addrs: addrs})
}

// Watch asks for an event at the end of each member, also of one that has ended already: EvGone if
// it finalized or never joined, else EvDied. The event of a process comes once for each Watch after
// the last event, so that a process that keeps no record of it may ask again. A member that never
// was a process of the job gets an EvNone; the head sends only a few of these for one Watch. One way.
func (c *Client) Watch(m wire.Members) error {
	if err := checkMembers(m); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	return c.tell(&protocol.Members{Kind: protocol.KindWatch, Members: m})
}

func checkMembers(m wire.Members) error {
	if n := len(m.Ranges()); n > protocol.MaxRanges {
		return protocol.Refused("%d ranges of processes, at most %d allowed", n, protocol.MaxRanges)
	}
	if m.Len() > protocol.MaxMembers {
		return protocol.Refused("%d processes, at most %d allowed", m.Len(), protocol.MaxMembers)
	}
	if !m.Check() {
		return protocol.Refused("a process stands twice among %d", m.Len())
	}
	return nil
}

// Lookup returns the set with this name: mpi://WORLD, mpi://SELF or mpi://PARENT of this process,
// gompi://JOB/NUMBER, or any other name of a set. An alias comes with the number of its set. The
// caller holds the set (ReleaseSet). The error is ErrNotFound if there is no such set, and ErrSetGone
// if no process holds it any more.
func (c *Client) Lookup(uri string) (wire.Set, error) {
	if len(uri) > protocol.MaxName {
		return wire.Set{}, protocol.NotFound("process set with a name of %d bytes", len(uri))
	}
	var b protocol.DescribeBody
	err := c.Ask(context.Background(), &protocol.Text{Kind: protocol.KindLookup, Text: uri}, &b)
	return b.Set, err
}

// DefineSet makes a new set of processes of this job, in this order. Each call makes another set,
// also for the same members. The set exists until every process that holds it has released it. A
// process that passes its name on therefore keeps it until the others have looked it up.
func (c *Client) DefineSet(m wire.Members) (wire.Set, error) {
	if err := checkMembers(m); err != nil {
		return wire.Set{}, fmt.Errorf("define set: %w", err)
	}
	return c.askSet(context.Background(), &protocol.Members{Kind: protocol.KindDefine, Members: m})
}

// ReleaseSet tells that this process needs a set no more. It is called once for each Lookup,
// DefineSet and Spawn that returned the set. The job forgets a set that no process holds. A process
// holds its WORLD, SELF and PARENT, and all that it does not release, until it finalizes. One way.
func (c *Client) ReleaseSet(number uint32) error { return c.tell(&protocol.Release{Number: number}) }

func (c *Client) askSet(ctx context.Context, m protocol.Message) (wire.Set, error) {
	body, err := c.ask(ctx, m)
	if err != nil {
		return wire.Set{}, err
	}
	var b protocol.SetBody
	if err := protocol.Decode(&b, body); err != nil {
		return wire.Set{}, err
	}
	return b.S, nil
}

// Put stores a value for every process of the job, in place of an older value. When it returns the
// value is there, until it is deleted, and val may be reused.
func (c *Client) Put(key string, val []byte) error {
	if key == "" || len(key) > protocol.MaxKey || len(val) > protocol.MaxValue {
		return protocol.Refused("put key of %d bytes (1 to %d) with value of %d bytes (at most %d)", len(key), protocol.MaxKey, len(val), protocol.MaxValue)
	}
	_, err := c.ask(context.Background(), &protocol.Put{Key: key, Val: val})
	return err
}

// Get returns the value of a key, which the caller owns. If there is none the error is ErrNotFound.
// With wait, Get waits for the value until ctx is done, the job ends (ErrEnding), or no other process
// is left that could Put it (a *GoneError for the last one).
func (c *Client) Get(ctx context.Context, key string, wait bool) ([]byte, error) {
	if key == "" || len(key) > protocol.MaxKey {
		return nil, protocol.NotFound("key of %d bytes (1 to %d)", len(key), protocol.MaxKey)
	}
	body, err := c.ask(ctx, &protocol.Get{Key: key, Wait: wait})
	if err != nil {
		return nil, err
	}
	var m protocol.ValueBody
	if err := protocol.Decode(&m, body); err != nil {
		return nil, err
	}
	return m.Val, nil
}

// Delete removes a key and its value from the store. The error is ErrNotFound if there is none.
func (c *Client) Delete(key string) error {
	if key == "" || len(key) > protocol.MaxKey {
		return protocol.NotFound("key of %d bytes (1 to %d)", len(key), protocol.MaxKey)
	}
	_, err := c.ask(context.Background(), &protocol.Text{Kind: protocol.KindDelete, Text: key})
	return err
}

// Fence returns when every member has called it with the same members in the same order. The caller
// must be a member. If a member finalizes or dies before, all get a *GoneError. After ctx is done the
// fence stays open for the others until the caller calls it again, unless it was completed just
// before.
func (c *Client) Fence(ctx context.Context, m wire.Members) error {
	if err := checkMembers(m); err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	_, err := c.ask(ctx, &protocol.Members{Kind: protocol.KindFence, Members: m})
	return err
}

// Common returns memory of n bytes that the members of a communicator on this host have in common.
// All that name the same context, members and lengths get the same memory. It is zero at first, and
// its first bytes have pages. The caller must be a member, asks once, and may touch the memory until
// LeaveCommon. have are the arenas, as bits, whose file the caller has; it owns the file of any
// other.
func (c *Client) Common(id wire.ContextID, m wire.Members, n, first int, have uint64) (wire.ArenaRange, error) {
	none := wire.ArenaRange{File: -1}
	if err := checkMembers(m); err != nil {
		return none, fmt.Errorf("common memory: %w", err)
	}
	body, fds, err := c.askFiles(context.Background(), &protocol.Common{ID: id, Members: m, Bytes: int64(n), First: int64(first), Have: have})
	if err != nil {
		return none, err
	}
	var b protocol.CommonBody
	if err := protocol.Decode(&b, body); err != nil {
		protocol.CloseFiles(fds[:]...)
		return none, fmt.Errorf("common memory: %w", err)
	}
	protocol.CloseFiles(fds[1:]...) // the same file once more
	if b.X.File = fds[0]; b.X.Arena >= wire.MaxArenas || b.X.File < 0 && have>>b.X.Arena&1 == 0 {
		_ = c.LeaveCommon(b.X) // fails only without a connection, and then nothing is held
		return none, fmt.Errorf("this process can open no more files (ulimit -n): %w", syscall.EMFILE)
	}
	return b.X, nil
}

// LeaveCommon tells that the caller does not touch its common memory any more. One way.
func (c *Client) LeaveCommon(x wire.ArenaRange) error {
	return c.tell(&protocol.LeaveCommon{Arena: x.Arena, Off: x.Off})
}

// Spawn starts n more processes of this job with the command line argv, or with that of the caller
// if argv is empty. It returns their set, which is their world, when they are started; they may not
// have joined yet. Their parent is the caller's mpi://SELF. The caller holds the set (ReleaseSet).
func (c *Client) Spawn(ctx context.Context, argv []string, n int) (wire.Set, error) {
	if n < 1 || n > protocol.MaxSpawn {
		return wire.Set{}, protocol.Refused("spawn of %d processes (1 to %d)", n, protocol.MaxSpawn)
	}
	b, err := c.SpawnAll(ctx, &protocol.Spawn{Parts: []protocol.SpawnPart{{N: n, Argv: argv}}})
	return b.World, err
}

// SpawnAll starts more processes of this job, which are a world of their own. If they could not be
// started the answer says which command failed. While a change that concerns the caller or one of
// the parents is undecided, the head waits with the spawn, but not for ever: the error is
// ErrUndecided then. When ctx is done the processes may still be starting, unless m.Joins. The caller
// holds the set World (ReleaseSet).
func (c *Client) SpawnAll(ctx context.Context, m *protocol.Spawn) (protocol.SpawnBody, error) {
	var b protocol.SpawnBody
	asked := protocol.Encode(m)
	if n := len(asked); n > protocol.KindSpawn.BodyLimit() {
		return b, protocol.Refused("spawn of %d commands with %d bytes, at most %d allowed", len(m.Parts), n, protocol.KindSpawn.BodyLimit())
	}
	if err := protocol.Decode(new(protocol.Spawn), asked); err != nil { // to the head it would break the protocol
		return b, protocol.Refused("spawn: %v", err)
	}
	body, err := c.ask(ctx, m)
	if err == nil {
		err = protocol.Decode(&b, body)
	}
	if err == nil && b.Text != "" {
		err = protocol.Refused("%s", b.Text)
	}
	return b, err
}

// Abort ends the job. When it returns the head knows, unless it did not answer within 2 s. The
// caller should exit.
func (c *Client) Abort(code int, msg string) error {
	ctx, cancel := context.WithTimeout(context.Background(), abortWait)
	defer cancel()
	_, err := c.ask(ctx, &protocol.Abort{Code: code, Text: msg})
	return err
}

// Finalize tells that this process leaves the job in order. When it returns the head knows, and the
// exit that follows is no death. Only Abort and Close may be called afterwards. No event comes any
// more but the end of the connection.
func (c *Client) Finalize() error {
	_, err := c.ask(context.Background(), &protocol.Empty{Kind: protocol.KindFinalize})
	return err
}

// Dead acknowledges the EvDied or EvGone of p: nothing of this process touches p's memory any more,
// and p's pid may be used again. One way.
func (c *Client) Dead(p wire.ProcID) error {
	return c.tell(&protocol.Proc{Kind: protocol.KindDead, Proc: p})
}

// Cut tells p, if it lives, that this process cannot communicate with it, and why (EvDisconnected).
// Each call makes an event, so that it also wakes p. One way.
func (c *Client) Cut(p wire.ProcID, why string) error {
	return c.tell(&protocol.Disconnected{Proc: p, Text: why})
}

// Ping asks whether p takes part in the job. If it does an EvPong with this id comes; else the event
// of its end comes to the processes that watch it. The head answers for a p that has not joined, and
// for this process itself. One way.
func (c *Client) Ping(p wire.ProcID, id uint64) error {
	return c.tell(&protocol.Ping{Kind: protocol.KindPing, Proc: p, ID: id})
}

// Pong answers an EvPing of p. One way.
func (c *Client) Pong(p wire.ProcID, id uint64) error {
	return c.tell(&protocol.Ping{Kind: protocol.KindPong, Proc: p, ID: id})
}

// Stacks answers an EvStacks. Each text is cut at MaxReport bytes. One way.
func (c *Client) Stacks(m protocol.Stacks) error {
	m.Queues, m.Stacks = m.Queues[:min(len(m.Queues), protocol.MaxReport)], m.Stacks[:min(len(m.Stacks), protocol.MaxReport)]
	return c.tell(&m)
}
