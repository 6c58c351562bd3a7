// SPDX-License-Identifier: Apache-2.0

// Package control is the folder of the control plane: everything about a job
// that is not a message between its ranks. One head owns what is of the whole
// job: processes, process sets, names, stores, fences, changes of size. An agent
// on each host owns what is of that host: segments, connections, descriptors,
// shared memory. Processes and tools (gompictl) talk to the agent, agents talk
// to the head. Head, agent and change are state machines without sockets and
// clocks: messages and the time go in, actions come out. The package itself is
// empty.
//
// In reading order:
//
//	protocol     the messages of the control plane, their limits and their encoding
//	client       a process's end of the connection, and that of gompictl
//	link         the connection between the head and the agent of another host
//	spawn        where new processes start, and in which groups
//	change       the state machine of operations that change process sets
//	changepage   the shared page on which the members of a set agree on a change
//	head         the owner of what is of the whole job
//	agent        the owner of what is of one host
//	server       head and agent joined, with sockets and time
//	callreg      the registry of blocking calls, legible when a process is stuck
//	collmem      the layout of the shared memory of collectives, which the agent allocates
//	hostmem      memory of a host that outlives its processes
//	controltest  helpers for the tests of these packages
//
// Where to change what: a new message is a type and a row in protocol and a
// handler in head or agent; a new state of a change of size is in change, whose
// twin in world_test.go checks it; what members see of it without a message is
// in changepage. Every new message gets a sample, which the fuzz tests use.
package control
