// SPDX-License-Identifier: Apache-2.0

// Package remote lets a process use memory of others without them: regions of
// its own that others may access, targets that are regions of others, and the
// words by which windows synchronise. It knows processes, not ranks; package
// rma stands on it. See docs/design/014-remote-memory.md.
package remote
