// SPDX-License-Identifier: Apache-2.0

package fault

// Call names a call of the library, such as "Recv", in errors and in the
// registry of blocking calls.
type Call string
