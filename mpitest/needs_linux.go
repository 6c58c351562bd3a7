// SPDX-License-Identifier: Apache-2.0

package mpitest

// So that a module that uses this package has, with go mod tidy, what it takes
// to build gompirun.
import _ "gompi/launcher"
