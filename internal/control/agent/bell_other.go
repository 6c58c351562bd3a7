// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package agent

import "errors"

func newBell() (int, error) { return -1, errors.ErrUnsupported }

func pairOf(arena, bell int) (*Files, error) { return nil, errors.ErrUnsupported }
