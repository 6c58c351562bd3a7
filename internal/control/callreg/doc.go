// SPDX-License-Identifier: Apache-2.0

// Package callreg is the registry of a process's blocking calls in its shared segment. The agent
// reads it when a user asks which process waits for which. It is always on, and can be read when
// the process is stuck or stopped. A Registry is the owner's side; Read is the reader's side. An
// Entry is one call, and Report is the text for users. Counters count the process's traffic.
//
// Only the owner writes. The reader trusts nothing: whatever the bytes are, Read ends and returns
// valid entries. All numbers are little-endian and all words have 8 bytes. A slot is read and
// written by whole words.
//
//	offset   bytes  what
//	0        8      magic
//	8        8      version
//	16       112    0
//	128      40     the process's Counters
//	168      88     0
//	256      256    slot 0
//	...             slots 1 to 62
//
//	slot:
//	0        8      sequence: odd while the slot is written, 0 never used
//	8        8      state (low 32 bits): 1 in use; communicator's size (high)
//	16       8      context: job of its creator
//	24       8      context: serial of its creator (low), own serial (high)
//	32       8      rank (low), peer (high), both signed
//	40       8      peer process: job
//	48       8      peer process: serial (low 32 bits), length of operation
//	                (next 8), length of caller (next 8), 0
//	56       8      tag, signed
//	64       8      bytes, signed
//	72       8      since, nanoseconds of Unix time
//	80       24     operation
//	104      120    caller
//	224      8      job of the process that keeps the call waiting (Entry.Holder)
//	232      8      its serial (low); 1 if it only waits before this one (high)
//	240      16     0
package callreg
