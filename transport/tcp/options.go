// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"fmt"
	"time"

	"gompi/internal/base/settings"
)

// Options are the knobs of one transport. The zero value is good.
type Options struct {
	// Listen are "ip:port" addresses to listen on, best first; port 0 lets
	// the system choose. They are announced as they are, so they must not be
	// unspecified (0.0.0.0). Empty means 127.0.0.1:0, or [::1]:0 on a host
	// without IPv4.
	Listen []string
	// EagerMax is the largest payload of Send in bytes, 64 (a
	// transport.MaxDesc) to 65536. Zero means the setting GOMPI_TCP_EAGER, or
	// 65536 without it.
	EagerMax int
	// ChunkBytes is the most that a bulk transfer sends before another
	// message or transfer of the same peer gets its turn, 4 KiB to 4 MiB.
	// Zero means the setting GOMPI_TCP_CHUNK, or 2 MiB without it.
	ChunkBytes int
	// StrangerTimeout is how long a caller may take for each of its steps of
	// the handshake. Zero means 5 s.
	UnprovenTimeout time.Duration
	// DialTimeout is how long one address may take to answer at all. Zero
	// means 5 s.
	DialTimeout time.Duration
	// AnswerTimeout is how long a process whose host has answered may take
	// for each of its steps of the handshake; it may be stopped or busy. Zero
	// means 30 s.
	AnswerTimeout time.Duration
	// LingerTimeout bounds the orderly end of a connection. Zero means 2 s.
	LingerTimeout time.Duration

	// lendFrom: transfers of so many bytes are lent, wherever the peer's processor is.
	// Zero means lendLeast, and to a far one. Tests set it.
	spliceFrom int
}

const (
	defaultChunk = 2 << 20
	minChunk     = settings.MinTCPChunk
)

// complete fills the zero fields in and validates the rest.
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
