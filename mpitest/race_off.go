// SPDX-License-Identifier: Apache-2.0

//go:build !race

package mpitest

const slower = 1
