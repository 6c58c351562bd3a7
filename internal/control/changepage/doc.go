// SPDX-License-Identifier: Apache-2.0

// Package changepage is the page of a process set that its members subscribe to: memory that
// the members on one host and their agent share. On it they agree without messages at which
// iteration a change is delivered to all of them, from which call on their queries show it, and
// whether it holds. The package is memory and a protocol: it never waits, sends nothing and
// reads no clock. A Page is a view of the memory, and a Member is one process's side of it. See
// docs/design/026-process-sets.md.
//
// Another process may have written anything on a page. A damaged page can make a change fail,
// or be delivered at different iterations, but only for its own set. The reader of the address
// of a next page checks it.
package changepage
