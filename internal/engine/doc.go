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
// Its files, the lowest first (docs/design/025-engine-nouns.md):
//
//	contact_linux.go
//	contact_other.go
//	context.go
//	request.go
//	queue.go
//	envelope.go
//	peer.go
//	arrival.go
//	credit.go
//	loop.go
//	engine.go
//	watch.go
//	retry.go
//	persist.go
//	inter.go
//	roll.go
//	service.go
//	elements.go
//	send.go
//	coll.go
//	part.go
//	wait.go
//	liveness.go
//	ping.go
//	memory.go
//	bell.go
//	node.go
//	fault.go
//	remote.go
//	node_join.go
//	line.go
//	queues.go
//	pack.go
//	early.go
//	node_heap.go
//	stages.go
//	free.go
//	stream.go
//	recv.go
//	fast.go
//	fate.go
//	pair.go
//	overlap.go
//	meet.go
//	complete.go
//	probe.go
//	buffered.go
//	await.go
package engine
