// SPDX-License-Identifier: Apache-2.0

// Package sam is a synthetic application whose number of ranks changes: it reads the
// configurations of Proteo's SAM (University Jaume I), emulates the iterations that they
// describe, and has package mam change the size and move the data.
//
// A configuration has phases of iterations, each of them stages (package stages), and
// groups: so many ranks do so many iterations, then the next group takes over. In a file a
// text "2:4" stands for two values; all combinations are its variants (Parse). A job runs
// one of them (Run), a Matrix all, and goes on where it was interrupted. docs/sam.md
package sam
