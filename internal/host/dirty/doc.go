// SPDX-License-Identifier: Apache-2.0

// Package dirty finds which of a process's memory is written while others read it: by
// the kernel (Tracker) or as the program says (Marks), chunk by chunk (Set); and it
// copies memory that is being written (Copy). A reader goes again for what was written
// since before it has read: docs/design/039-arrays-and-deltas.md.
package dirty
