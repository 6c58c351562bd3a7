// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"bytes"
	"time"
)

const (
	// chunkBytes is read from a stream at a time.
	chunkBytes = 64 << 10
	// maxPartial bytes of an unfinished line are held back, then passed on.
	maxPartial = 64 << 10
	// lineWait is how long an unfinished line may lie (a prompt), and how
	// long a stream that fell silent inside a line keeps others waiting.
	lineWait = 100 * time.Millisecond
)

// stream is the stdout or stderr of one process, as lines.
type stream struct {
	tag string // "[3] ", "" without --tag
	// held is the start of a line that has not been passed on, at most
	// maxPartial bytes.
	held []byte
	// since is when held began to fill, last when the stream spoke last.
	since, last time.Time
}

// lines merges streams into one output so that lines stay whole. A stream whose output
// ends inside a line (a prompt, a huge line) owns the output; the others wait until its
// line ends or it has been silent for a while. Without tags the bytes of each stream come
// out unchanged. It is a pure state machine: no clock, no descriptors.
type lines struct {
	owner *stream
	buf   []byte // reused for tagged output
}

// mayWrite reports whether output of s may be written now.
func (l *lines) mayWrite(s *stream) bool { return l.owner == nil || l.owner == s }

// feed takes new bytes of s: data holds s.held and then the new bytes. It returns the
// bytes to write now, valid until the next call, and keeps the rest. all writes an
// unfinished line too. It requires mayWrite(s).
func (l *lines) feed(s *stream, data []byte, all bool) []byte {
	k := bytes.LastIndexByte(data, '\n') + 1
	if all || len(data)-k >= maxPartial {
		k = len(data)
	}
	out, rest := data[:k], data[k:]
	midline := l.owner == s
	if s.tag != "" {
		out = l.tagged(s.tag, out, midline)
	}
	s.held = append(s.held[:0], rest...)
	if k > 0 {
		l.owner = nil
		if data[k-1] != '\n' {
			l.owner = s
		}
	}
	return out
}

// release takes the output from its owner. It returns the bytes to write: with tags, the
// end of the line.
func (l *lines) release() []byte {
	s := l.owner
	l.owner = nil
	if s != nil && s.tag != "" {
		return []byte{'\n'}
	}
	return nil
}

// tagged puts the tag at the start of every line.
func (l *lines) tagged(tag string, text []byte, midline bool) []byte {
	b := l.buf[:0]
	for len(text) > 0 {
		if !midline {
			b = append(b, tag...)
		}
		midline = false
		k := bytes.IndexByte(text, '\n') + 1
		if k == 0 {
			k = len(text)
		}
		b = append(b, text[:k]...)
		text = text[k:]
	}
	l.buf = b
	return b
}
