// SPDX-License-Identifier: Apache-2.0

// Package host is the folder of the packages that deal with one machine: its
// processors, its memory, its kernel. They know nothing of messages or jobs.
// The package itself is empty.
//
// In reading order:
//
//	cgroup     the processors and the memory that a process may use
//	cpus       the processors of the machine, and those that each rank gets
//	cachedist  whether two processors share a cache
//	cputime    the processor time of a thread
//	wait       the engine's lock, the back-off from spinning to sleep, the one place of sleep
//	mem        copies of memory, by the loops that caches like
//	huge       huge pages for memory that is copied again and again
//	segment    the one memfd of each process, and the arenas of agents
//	dirty      pages that are written while others read them
//	parallel   several threads for one short piece of work
//
// Where to change what: another machine's way to share memory begins in
// segment; another way to wait is a policy in wait; a processor's own copy loop
// goes to mem, with its plain twin and FuzzPast.
package host
