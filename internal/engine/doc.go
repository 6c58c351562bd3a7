// SPDX-License-Identifier: Apache-2.0

// Package engine moves messages for one process: matching, requests,
// rendezvous, flow control, failure and the execution of collective
// schedules, over any set of transports.
//
// An Engine is a value; a process is one engine, and many may live in one
// operating system process. One lock guards all of it; transports are called
// with the lock held and never call back.
//
// One goroutine polls at a time, the leader; the others park on their waiter
// and are woken when their requests complete. When nothing has happened for
// the length of the wait policy, the leader parks too and the service
// goroutine sleeps in the kernel for all of them. See docs/design/001-engine.md.
//
// # Packages below
//
// In reading order:
//
//	match     receives meet messages in MPI's order
//	progress  who polls, who waits and who sleeps in one process
//	shmem     blocks of memory that processes of a host share, and what is mapped of others
//	shmcoll   collectives in memory that ranks of a host share
//	remote    one-sided access to the memory of other processes
//
// # Parts
//
// A part is a value: its fields, and the methods that work on them. Engine
// embeds the parts, so its API is theirs; Engine itself has only what takes
// several parts at once. A part reaches the parts below it by named fields. What
// it must tell a part above goes through a small interface that it declares
// itself (up), which is called where a connection changes, never for a message.
// One lock guards all parts: their methods are called with it held. What needs
// no lock, clock or transport is a package of its own.
//
//	part            what it is                                     reaches
//	process         configuration, lock, who polls                 -
//	waiters         goroutines in blocking calls                   process; up: give up a wait
//	liveness        the ends of others, questions about them       process, waiters
//	network         peers, links, bells, connecting, control       process, liveness, flow; up: a link
//	                frames                                         takes messages, has ended
//	flow            credit of each peer, memory of arrivals        process, network
//	requests        operations, their pool, their end              process; up: a step has ended
//	matching        where receives and messages meet               process, requests, network, flow
//	remoteFrames    frames of remote memory                        process, network
//	sends           queues, announcements, streams out             all above
//	receives        posting, arriving, delivering, streams in      all above but remoteFrames;
//	                                                               communicators; up: what forbids it
//	communicators   contexts, those freed, news                    -
//	schedules       collectives by messages: rounds, giving up     requests, network, matching, sends,
//	                                                               receives; up: what they have shared
//	parts, pairs    partitioned operations; send and receive as    requests, network, sends, receives,
//	                one request                                    schedules
//
// Rules: a new method belongs to the part whose fields it changes, and if these
// are two, to the upper one. A part has no pointer to Engine; a communicator and
// a request have one, because the layer above calls their methods and has nothing
// else in its hand. The fast path (fast.go) stays in one piece on Engine.
//
// A pointer where a field was costs a load: the parts lie in Engine by value.
// Two embedded parts with a method of one name compile where nobody calls it.
//
// # Files
//
// The lowest first, with the parts. TestFloors of internal/test/archtest counts
// the names that a file takes from above; the count may only fall.
//
//	envelope.go       what a frame says
//	seat.go           a rank of either group
//	process.go        process: what all others need
//	part_tags.go      tags of partitions
//	places.go         places of persistent collectives
//	context.go        a communicator: its data
//	request.go        requests: an operation: its data, the pool, its end
//	elements.go       what a message is made of
//	queue.go          lists of requests
//	arrival.go        unexpected messages
//	roll.go           where calls that wait came from
//	wait.go           waiters: goroutines in blocking calls
//	liveness.go       liveness: what is known of the ends of others
//	contact_linux.go  contacts that nobody uses
//	contact_other.go
//	loop.go           the transport of a process to itself
//	peer.go           network: who there is, and how it is reached
//	link.go           a transport as the engine sees it
//	pack.go           strided memory on its way
//	standing.go       what stands against using a communicator
//	persist.go        numbers of collective calls
//	credit.go         flow: what is told of credit
//	retry.go          asking for contacts
//	bell.go           how a sleeper without connection is woken
//	matching.go       matching: where receives and messages meet
//	remote.go         remoteFrames: frames of remote memory
//	send.go           sends
//	recv.go           receives
//	stream.go         messages that go in pieces
//	coll.go           schedules: collectives by messages
//	part.go           parts: partitioned operations
//	pair.go           pairs: a send and a receive as one
//	engine.go         Engine: the values above, and what takes several of them
//	watch.go          hooks that end with the process
//	memory.go         memory that processes share
//	node.go           collectives on a board
//	fault.go          failing what is pending
//	waiting.go        what Wait waits for
//	node_join.go      whether ranks have a board
//	line.go           collectives that do not block, on a ring of slots
//	early.go          news of what is not there yet
//	register.go       making communicators
//	dispatch.go       polling, and who is told what came
//	service.go        sleep
//	node_heap.go      boards in blocks
//	complete.go       Wait, Test and their like
//	buffered.go       what buffered mode needs
//	ptp.go            Send, Recv and their like
//	probe.go          messages that nobody has received
//	fate.go           the end of a process
//	life.go           New, Close
//	meet.go           ids without a communicator
//	asking.go         asking for the fate of others
//	stages.go         collectives of several nodes
//	free.go           the end of a communicator
//	await.go          waits for words in memory
//	overlap.go        two calls at once
//	collective.go     a collective call
//	fast.go           the short way
//	brief.go          likewise of collectives
//	queues.go         what is pending, for people
//	report.go         what a process waits for, for people
//	told.go           how messages have gone, for people
//	retire.go         a process that leaves the others
package engine
