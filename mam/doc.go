// SPDX-License-Identifier: Apache-2.0

// Package mam makes programs malleable: a program registers its data and calls one
// function in each iteration, and the job changes size under it. It re-implements the
// module of Proteo (MaM, University Jaume I), by its names, and goes beyond it.
//
//	func run(ctx context.Context, world *mpi.Comm) error {
//		var x []float64
//		register := func(m *mam.Module) error {
//			if m.Role() == mam.Source {
//				x = make([]float64, mam.Block(n).Count(m.Comm().Size(), m.Comm().Rank()))
//			}
//			return mam.Distributed(m, "x", &x, mam.Block(n), mam.Variable)
//		}
//		return mam.Loop(ctx, world, mam.Config{}, register, func(m *mam.Module, i int) (bool, error) {
//			return i == 1000, step(m.Comm(), x)
//		})
//	}
//
// A change has these steps: constant data moves, while the sources compute or at the commit;
// the user phase, if Init was given a function; variable data moves; all commit, in the same
// iteration. Until then every variable is what it was, and it stays that if the change is
// rolled back. A process that leaves gets ErrLeaving, and returns it from the function given
// to mpi.Main.
//
// The module watches the set gompi://main: gompictl resize, timetables, resource managers
// and [Module.SetTarget] ask for changes of it. docs/design/030-malleability-module.md
// Whole programs are examples/cg (layouts by weights, constant and variable data) and
// examples/swe (a user phase that moves what no layout describes).
//
// Data that [Array] registers lies in memory of the hosts. On one host it does not move.
//
// With a background strategy variable data moves while the sources compute, too. The kernel
// tracks what they write meanwhile (userfaultfd, Linux 6.7), or the program tells it ([Marked],
// [Module.Written]), and only that moves again at the commit. Variable data moves at the commit
// alone where nothing tracks its writes (memory that other processes store to and that is not
// marked, older kernels, other systems), and below 64 KiB.
//
// To read the code: reconfiguration.go has the plan of one change, schedule.go the strategies,
// mover.go the table of methods. A method is a file: col.go, p2p.go, rma.go, pull.go, and
// inplace.go for arrays. checkpoint.go, background.go and newcomer.go are the three callers,
// commit.go and failure.go the two ends.
//
// Limitations: the description of all data has at most 64 MiB as text, in which each list of
// weights of rows stands once. Elements have no pointers. Values with pointers are encoded
// ([Encoded]), are the same on all ranks, and move at the commit unless they are constant.
// Spawn strategies apply to changes that the program asks for.
package mam
