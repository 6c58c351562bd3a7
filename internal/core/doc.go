// SPDX-License-Identifier: Apache-2.0

// Package core is the part of a process that its public packages share: how it boots
// (Boot), the process itself (Process), and what its communicators are (Comm). mpi, rma,
// sessions and mam stand on it. Each handle of package mpi has one method Core, which
// returns a value of this package or of a leaf; programs cannot name these types.
//
// Where to change what: the choice of transports is in transports.go; the join of a job
// in boot.go and join.go; the checks of GOMPI_CHECK in check*.go; allocation of context
// ids in agree.go and meet.go. docs/design/019-core.md tells why core is one package.
package core
