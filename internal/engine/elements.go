// SPDX-License-Identifier: Apache-2.0

package engine

// elements says of what a message consists.
type elements uint16
