// SPDX-License-Identifier: Apache-2.0

package fault

// Call names a call in errors and in the registry of blocking calls: "Recv".
type Call string
