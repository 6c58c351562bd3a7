// SPDX-License-Identifier: Apache-2.0

// Package sessions is MPI Sessions with process sets that change.
//
// A [Session] sees process sets and makes groups and communicators of them. [Submit]
// requests a change: processes come or go. [Watch] follows the changes of a set: its
// members get a [Change] in the same iteration of their loops, without waiting for each
// other, and [Change.Commit] votes for it. [Session.PSetOp] and its kin are the same
// changes under the calls of the DPP prototype.
//
// Reading order: session.go, psets.go, comm.go (sessions and sets); request.go,
// operation.go (a request for a change); watcher.go, check.go, delivery.go (how a change
// reaches the program); change.go, commit.go (its decision); query.go, dpp.go.
//
// MPI 4.1 chapter 11; docs/design/026-process-sets.md.
package sessions
