// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package kernel

var vectors table
