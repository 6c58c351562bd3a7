// SPDX-License-Identifier: Apache-2.0

// Package huge asks the kernel for huge pages. Pages watches the memory that system calls
// copy again and again, and turns it into huge pages when that pays. Advise and Collapse
// do the same for memory that is touched for the first time.
//
// The reason is the price of small pages. process_vm_readv and writev look up every page
// of the other process: 0.21 us for each 4 KiB, as much as the copy itself. The first
// touch of 4 KiB takes 0.5 us and more; a huge page needs a fifth of that.
package huge
