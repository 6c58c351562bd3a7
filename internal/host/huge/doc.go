// SPDX-License-Identifier: Apache-2.0

// Package huge asks the kernel for huge pages: where memory is copied by system
// calls again and again, and where much of it is touched first. process_vm_readv
// and writev look up every page of the other process: 0.21 us for each 4 KiB, as
// much as the copying itself. The first touch of 4 KiB takes 0.5 us and more, of
// which a huge page needs a fifth.
package huge
