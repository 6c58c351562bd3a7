// SPDX-License-Identifier: Apache-2.0

// Package base is the folder of the small packages under everything else. They
// hold data and arithmetic: names that processes exchange, errors, sets, lists,
// pools. They know no other part of gompi, and nearly none touches the
// operating system. The package itself is empty.
//
// In reading order:
//
//	wire      names that cross process boundaries: ProcID, ContextID, Members, the message header
//	fault     why an operation failed, the table of error classes, the names of calls
//	group     algebra of process groups (MPI 4.1 section 7.3)
//	topo      process topologies: grids and their dimensions
//	idset     sets of serial numbers
//	list      intrusive lists
//	freelist  the free parts of a range of addresses
//	bytepool  recycled memory for payloads
//	credit    flow control: how much a sender may have unreceived at a receiver
//	retry     how long to try again when descriptors or memory are missing
//	settings  the values that settings of the runtime may have
//	version   the version of gompi that a program contains
//
// Where to change what: a new error class is a row in fault/class.go; a new
// setting is a row in settings; a field of the message header belongs to
// wire/id.go, and transport/transporttest then holds every transport to it.
package base
