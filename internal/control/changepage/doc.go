// SPDX-License-Identifier: Apache-2.0

// Package setpage is the page of a watched process set: memory that its members on
// one host and their agent share, on which they agree without messages on the
// iteration at which all adopt a change, on which of their queries first shows it,
// and on whether it holds. It is memory and protocol: it waits for nobody, sends
// nothing and asks no clock. See docs/design/032-agreement.md.
//
// Whatever a member reads here another process may have written. A page that is
// scribbled on can make a change fail, or be adopted at different iterations, of
// its own set only. What it says of the next page, its reader checks.
package changepage
