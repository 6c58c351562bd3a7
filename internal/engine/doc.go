// SPDX-License-Identifier: Apache-2.0

// Package engine moves the messages of one process: matching, requests,
// rendezvous, flow control, failure handling and the execution of collective
// schedules, over any set of transports.
//
// An Engine is a value; a process has one engine, and many may live in one
// operating system process. One lock guards all of it. Transports are called
// with the lock held and never call back.
//
// One goroutine polls at a time, the leader. The others park on their waiter and
// are woken when their requests complete. When nothing has happened for the
// length of the wait policy, the leader parks too, and the service goroutine
// sleeps in the kernel for all of them. See docs/design/001-engine.md.
//
// # Packages below
//
// In reading order:
//
//	match     receives meet messages in MPI's order
//	progress  who polls, who waits and who sleeps in one process
//	shmem     memory that processes of a host share, and mappings of others' memory
//	shmcoll   collectives in memory that ranks of a host share
//	remote    one-sided access to the memory of other processes
//
// # Where to change what
//
//	a short message                      fast_path.go
//	a long one                           send.go, recv.go, stream.go
//	a frame between engines              envelope.go, dispatch.go
//	a collective by messages             coll_schedule.go
//	a collective in shared memory        coll_shm.go, and package shmcoll
//	the end of another process           peer_failure.go, fault_state.go
//	what a report says of a stuck rank   stuck_report.go, queue_report.go
//
// # Parts
//
// A part is a value: its fields, and the methods that work on them. Engine
// embeds the parts, so its API is theirs. Engine itself has only the methods
// that need several parts. A part reaches the parts below it by named fields.
// It informs a part above through a small interface that it declares itself
// (up); that happens when a connection or an operation ends, never for a
// message. One lock guards all parts: their methods must be called with it held.
// Code that needs no lock, clock or transport is a package of its own.
//
//	part            what it is                                     reaches
//	process         configuration, lock, who polls                 -
//	waiters         goroutines in blocking calls                   process; up: give up a wait
//	liveness        the ends of others, queries about them         process, waiters
//	network         peers, links, bells, connecting, control       process, liveness, flow; up: a link
//	                frames                                         has room, has ended
//	flow            credit of each peer, memory of arrivals        process, network
//	requests        operations, their pool, their end              process; up: a step has ended
//	matching        the table of receives and messages             process, requests, network, flow
//	remoteFrames    frames of remote memory                        process, network
//	sends           queues, announcements, outgoing streams        all above
//	receives        posting, arriving, delivering, incoming        all above but remoteFrames;
//	                streams                                        communicators; up: may it post?
//	communicators   contexts, freed ones, notices                  -
//	schedules       collectives by messages: rounds, giving up     requests, network, matching, sends,
//	                                                               receives; up: leave shared memory
//	partitions,     partitioned operations; send and receive as    requests, network, sends, receives,
//	sendRecvs       one request                                    schedules
//
// A new method belongs to the part whose fields it changes; if these are two, to
// the upper one. A part has no pointer to Engine. A communicator and a request
// have one, because the layer above calls their methods and has nothing else.
// The fast path (fast_path.go) stays in one piece on Engine.
//
// The parts lie in Engine by value: a pointer in place of a field costs a load.
// Beware: two embedded parts with a method of the same name compile as long as
// nobody calls it.
//
// # Files
//
// The lowest first, with the parts. TestFloors of internal/test/archtest counts
// the names that a file takes from above; the count may only fall.
//
//	envelope.go           the header of a frame
//	member.go             the index of a process in both groups
//	process.go            process: what all others need
//	tag_pool.go           tags of partitions
//	persistent_places.go  places of persistent collectives
//	context.go            a communicator: its data
//	request.go            requests: an operation: its data, the pool, its end
//	elements.go           what a message is made of
//	request_list.go       lists of requests
//	arrival.go            unexpected messages
//	callsite.go           call sites of blocking calls
//	waiter.go             waiters: goroutines in blocking calls
//	liveness.go           liveness: what is known of the ends of others
//	contact_linux.go      closing a contact
//	contact_other.go
//	loopback.go           the transport of a process to itself
//	peer.go               network: peers and connections
//	link.go               a transport as the engine sees it
//	packer.go             strided memory on its way
//	fault_state.go        the faults of a communicator
//	coll_number.go        numbers of collective calls
//	credit.go             flow: credit and its frames
//	contact_fetch.go      asking for contacts
//	bell.go               waking a process without a connection
//	matching.go           matching: the table of receives and messages
//	remote_frame.go       remoteFrames: frames of remote memory
//	send.go               sends
//	recv.go               receives
//	stream.go             messages in pieces
//	coll_schedule.go      schedules: collectives by messages
//	partitioned.go        partitions: partitioned operations
//	send_recv.go          sendRecvs: a send and a receive as one request
//	engine.go             Engine: the parts
//	process_hook.go       hooks that end with the process
//	memory.go             memory shared with other processes
//	coll_shm.go           collectives in shared memory
//	fault.go              failing what is pending
//	wait_loop.go          waiting for one request
//	coll_shm_setup.go     the vote for shared memory
//	coll_queue.go         nonblocking collectives on slot rings
//	notice.go             frames for what does not exist yet
//	comm_create.go        making communicators
//	dispatch.go           polling and handling events
//	service.go            sleep
//	coll_shm_heap.go      blocks for the areas of new communicators
//	completion.go         Wait, Test and their like
//	buffered_mode.go      what buffered mode needs
//	p2p.go                Send, Recv and their like
//	probe.go              probes and matched probes
//	peer_failure.go       the end of a process
//	lifecycle.go          New, Close
//	group_create.go       ids without a common communicator
//	failure_query.go      asking for the end of others
//	coll_stages.go        collectives of several hosts
//	comm_free.go          the end of a communicator
//	word_wait.go          waits for words in memory
//	overlap.go            two collective calls at once
//	coll_call.go          a collective call
//	fast_path.go          the fast path of short messages
//	coll_fast_path.go     the fast path of collectives
//	queue_report.go       what is pending, for people
//	stuck_report.go       what a process waits for, for people
//	peer_stats.go         how messages travel, for people
//	finalize.go           a process that leaves the others
package engine
