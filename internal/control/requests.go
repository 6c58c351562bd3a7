// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"fmt"
	"syscall"
	"time"

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
	body, fds, err := c.askFiles(context.Background(), &procMsg{kContact, p})
	if err != nil {
		return none, err
	}
	var m contactBody
	if err := decode(&m, body); err != nil {
		closeFDs(fds[:])
		return none, fmt.Errorf("contact %v: %w", p, err)
	}
	if passes && m.c.SameHost && fds[0] < 0 {
		return none, fmt.Errorf("this process can open no more files (ulimit -n): %w", syscall.EMFILE)
	}
	m.c.Segment, m.c.Bell = fds[0], fds[1]
	return m.c, nil
}

// Announce tells the head the TCP addresses ("ip:port", best first, at most
// MaxAddrs) at which this process can be reached; none is fine. Until the
// first call nobody gets a Contact for this process. A later call replaces
// the addresses for Contacts to come. One way.
func (c *Client) Announce(addrs []string) error {
	if len(addrs) > MaxAddrs {
		return fmt.Errorf("announce %d addresses, at most %d allowed", len(addrs), MaxAddrs)
	}
	for _, a := range addrs {
		if len(a) > maxAddr {
			return fmt.Errorf("announce address %.40q... of %d bytes, at most %d allowed", a, len(a), maxAddr)
		}
	}
	return c.tell(&announceMsg{addrs})
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
	return c.tell(&membersMsg{kWatch, m})
}

func checkMembers(m wire.Members) error {
	if n := len(m.Ranges()); n > maxRanges {
		return refused("%d ranges of processes, at most %d allowed", n, maxRanges)
	}
	if m.Len() > maxMembers {
		return refused("%d processes, at most %d allowed", m.Len(), maxMembers)
	}
	if !m.Check() {
		return refused("a process stands twice among %d", m.Len())
	}
	return nil
}

// Lookup returns the set with this name: mpi://WORLD, mpi://SELF,
// mpi://PARENT of this process, or gompi://JOB/NUMBER. Aliases come with the
// number of the set they stand for. ErrNotFound if there is none, or nobody
// holds it any more: see ReleaseSet.
func (c *Client) Lookup(uri string) (wire.Set, error) {
	if len(uri) > maxURI {
		return wire.Set{}, notFound("process set with a name of %d bytes", len(uri))
	}
	return c.askSet(context.Background(), &textMsg{kLookup, uri})
}

// DefineSet makes a new set of processes of this job, in this order. Each
// call makes another one, also for the same members. It lives until everybody
// who was given it has released it, so whoever tells others of its name keeps it
// until they have looked it up.
func (c *Client) DefineSet(m wire.Members) (wire.Set, error) {
	if err := checkMembers(m); err != nil {
		return wire.Set{}, fmt.Errorf("define set: %w", err)
	}
	return c.askSet(context.Background(), &membersMsg{kDefine, m})
}

// ReleaseSet tells that this process needs a set no more: once for each Lookup,
// DefineSet and Spawn that returned it. A set that nobody holds any more is
// forgotten by the job. A process holds its WORLD, SELF and PARENT until it
// finalizes, and what it never releases until then. One way.
func (c *Client) ReleaseSet(number uint32) error { return c.tell(&releaseMsg{number}) }

func (c *Client) askSet(ctx context.Context, m message) (wire.Set, error) {
	body, err := c.ask(ctx, m)
	if err != nil {
		return wire.Set{}, err
	}
	var b setBody
	if err := decode(&b, body); err != nil {
		return wire.Set{}, err
	}
	return b.s, nil
}

// Put stores a value for every process of the job; an older value is replaced.
// On return it is there, until it is deleted. Val may be reused then.
func (c *Client) Put(key string, val []byte) error {
	if key == "" || len(key) > MaxKey || len(val) > MaxValue {
		return refused("put key of %d bytes (1 to %d) with value of %d bytes (at most %d)", len(key), MaxKey, len(val), MaxValue)
	}
	_, err := c.ask(context.Background(), &putMsg{key, val})
	return err
}

// Get returns the value of a key; the caller owns it. If there is none yet,
// the error is ErrNotFound, or with wait Get waits for it until ctx is done,
// the job ends (ErrEnding), or no other process is left that could Put it (a
// *GoneError for the last one).
func (c *Client) Get(ctx context.Context, key string, wait bool) ([]byte, error) {
	if key == "" || len(key) > MaxKey {
		return nil, notFound("key of %d bytes (1 to %d)", len(key), MaxKey)
	}
	body, err := c.ask(ctx, &getMsg{key, wait})
	if err != nil {
		return nil, err
	}
	var m valueBody
	if err := decode(&m, body); err != nil {
		return nil, err
	}
	return m.val, nil
}

// Delete removes a key and its value from the store; ErrNotFound if there is
// none.
func (c *Client) Delete(key string) error {
	if key == "" || len(key) > MaxKey {
		return notFound("key of %d bytes (1 to %d)", len(key), MaxKey)
	}
	_, err := c.ask(context.Background(), &textMsg{kDelete, key})
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
	_, err := c.ask(ctx, &membersMsg{kFence, m})
	return err
}

// Common returns memory of n bytes for the members of a communicator, or for
// those of them that are on this host: zeroed at first, and the same for all that
// name the same context, members and length. The caller is one of these, asks
// once, and owns the descriptor.
func (c *Client) Common(id wire.ContextID, m wire.Members, n int) (fd int, err error) {
	if err := checkMembers(m); err != nil {
		return -1, fmt.Errorf("common memory: %w", err)
	}
	_, fds, err := c.askFiles(context.Background(), &commonMsg{kCommon, id, m, int64(n)})
	if err != nil {
		return -1, err
	}
	if fds[0] < 0 {
		return -1, fmt.Errorf("this process can open no more files (ulimit -n): %w", syscall.EMFILE)
	}
	closeFDs(fds[1:]) // the same once more
	return fds[0], nil
}

// LeaveCommon tells that the caller, which was given common memory, uses it no
// more, and perhaps others have not asked for it. One way.
func (c *Client) LeaveCommon(id wire.ContextID, m wire.Members, n int) error {
	return c.tell(&commonMsg{kUncommon, id, m, int64(n)})
}

// Spawn starts n more processes of this job with the command line argv, or
// the caller's own if argv is empty. It returns their set, which is their
// world, when they have been started, not necessarily joined; their parent is
// the caller's mpi://SELF. When ctx is done they may still be starting. The
// caller holds the set: see ReleaseSet.
func (c *Client) Spawn(ctx context.Context, argv []string, n int) (wire.Set, error) {
	size := 0
	for _, s := range argv {
		size += len(s) + 4
	}
	if n < 1 || n > MaxSpawn || len(argv) > maxArgs || size > MaxArgs {
		return wire.Set{}, refused("spawn of %d processes (1 to %d) with %d arguments (at most %d) of %d bytes (at most %d)",
			n, MaxSpawn, len(argv), maxArgs, size, MaxArgs)
	}
	return c.askSet(ctx, &spawnMsg{n, argv})
}

// Abort ends the job. The head knows when it returns, unless the head does not
// answer within 2 s. The caller should exit.
func (c *Client) Abort(code int, msg string) error {
	ctx, cancel := context.WithTimeout(context.Background(), abortWait)
	defer cancel()
	_, err := c.ask(ctx, &abortMsg{code, msg})
	return err
}

// Finalize tells that this process leaves in order; when it returns the head
// knows, and the exit that follows is no death. Afterwards only Abort and
// Close make sense; no events but the end of the connection come any more.
func (c *Client) Finalize() error {
	_, err := c.ask(context.Background(), &emptyMsg{kFinalize})
	return err
}

// Dead acknowledges the EvDied or EvGone of p: nothing of this process touches
// p's memory any more, and p's pid may be used again. One way.
func (c *Client) Dead(p wire.ProcID) error { return c.tell(&procMsg{kDead, p}) }

// Cut tells p, if it lives, that this process cannot talk to it, and why: EvCut.
// Each call is told, so it also wakes p. One way.
func (c *Client) Cut(p wire.ProcID, why string) error { return c.tell(&cutMsg{p, why}) }

// Ping asks whether p takes part in the job: an EvPong with this id if it does,
// else its end is told to those who watch it. For this process itself the head
// answers, and for one that has not joined yet. One way.
func (c *Client) Ping(p wire.ProcID, id uint64) error { return c.tell(&pingMsg{kPing, p, id}) }

// Pong answers an EvPing of p. One way.
func (c *Client) Pong(p wire.ProcID, id uint64) error { return c.tell(&pingMsg{kPong, p, id}) }

// Stacks answers the EvStacks with this id. Each text is cut at MaxReport
// bytes. One way.
func (c *Client) Stacks(id uint64, queues []byte, stacks []byte) error {
	return c.tell(&stacksMsg{id, queues[:min(len(queues), MaxReport)], stacks[:min(len(stacks), MaxReport)]})
}
