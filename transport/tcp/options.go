// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"fmt"
	"time"

	"gompi/internal/base/settings"
)

// Options are the settings of one transport. The zero value is good.
type Options struct {
	// Listen are the "ip:port" addresses to listen on, the best first; port 0 lets the system
	// choose. They are announced unchanged, so they must not be unspecified (0.0.0.0). Empty
	// means 127.0.0.1:0, or [::1]:0 on a host without IPv4.
	Listen []string
	// EagerMax is the largest payload of Send in bytes, 64 (a transport.MaxDesc) to 65536.
	// Zero means the setting GOMPI_TCP_EAGER, or 65536 without it.
	EagerMax int
	// ChunkBytes bounds what a bulk transfer sends before another message or transfer of the
	// same peer has its turn, 4 KiB to 4 MiB. Zero means the setting GOMPI_TCP_CHUNK, or 2 MiB
	// without it.
	ChunkBytes int
	// UnprovenTimeout bounds each step of a caller's handshake. Zero means 5 s.
	UnprovenTimeout time.Duration
	// DialTimeout bounds the time until an address answers at all. Zero means 5 s.
	DialTimeout time.Duration
	// AnswerTimeout bounds each handshake step of a process whose host has answered. The
	// process may be stopped or busy. Zero means 30 s.
	AnswerTimeout time.Duration
	// LingerTimeout bounds the orderly end of a connection. Zero means 2 s.
	LingerTimeout time.Duration

	// spliceFrom is the size from which transfers are spliced, wherever the peer's processor
	// is. Zero means spliceMin, and only for far processors. Tests set it.
	spliceFrom int
}

const (
	defaultChunk = 2 << 20
	minChunk     = settings.MinTCPChunk
)

// complete sets the zero fields to their defaults and checks the others.
func (o *Options) complete(setting func(string) string) error {
	sizes := []struct {
		value  *int
		knob   settings.Range
		normal int64
	}{
		{&o.EagerMax, settings.TCPEager, eagerLimit},
		{&o.ChunkBytes, settings.TCPChunk, defaultChunk},
	}
	for _, s := range sizes {
		if *s.value == 0 {
			n, err := s.knob.Lookup(setting, s.normal)
			if err != nil {
				return fmt.Errorf("tcp: %w", err)
			}
			*s.value = int(n)
		}
		if n := int64(*s.value); n < s.knob.Min || n > s.knob.Max {
			return fmt.Errorf("tcp: %s is %d, allowed are %d to %d bytes", s.knob.Env, n, s.knob.Min, s.knob.Max)
		}
	}
	times := []struct {
		value  *time.Duration
		name   string
		normal time.Duration
	}{
		{&o.UnprovenTimeout, "StrangerTimeout", 5 * time.Second},
		{&o.DialTimeout, "DialTimeout", 5 * time.Second},
		{&o.AnswerTimeout, "AnswerTimeout", 30 * time.Second},
		{&o.LingerTimeout, "LingerTimeout", 2 * time.Second},
	}
	for _, d := range times {
		if *d.value == 0 {
			*d.value = d.normal
		}
		if *d.value < 0 {
			return fmt.Errorf("tcp: %s is %v, it must not be negative", d.name, *d.value)
		}
	}
	return nil
}
