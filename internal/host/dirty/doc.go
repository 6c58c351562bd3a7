// SPDX-License-Identifier: Apache-2.0

// Package dirty finds out which memory of a process is written while others read it. A
// Tracker learns it from the kernel; Marks learn it from the program. Both return a Set of
// chunks. Copy copies memory while it is written. A reader reads a memory once and then
// reads the chunks again that were written since it began:
// docs/design/039-arrays-and-deltas.md.
package dirty
