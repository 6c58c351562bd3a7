// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"gompi/internal/base/version"
	"gompi/launcher/rm"
)

// Version is the version of the lines, MaxLine the largest one in bytes, which may hold a
// COL.
const (
	Version = 1
	MaxLine = 128 << 10
)

// maxText bounds texts for people, in bytes.
const maxText = 4 << 10

// line is a message in either direction. The design lists the fields of each event.
type line struct {
	Event   string `json:"event,omitempty"`
	Version int    `json:"version,omitempty"`
	Ask     string `json:"ask,omitempty"`

	Job     string          `json:"job,omitempty"`
	Program string          `json:"program,omitempty"`
	Start   int             `json:"start,omitempty"`
	Limit   float64         `json:"limit,omitempty"` // seconds
	COL     json.RawMessage `json:"col,omitempty"`

	Size    int    `json:"size,omitempty"`
	Min     int    `json:"min,omitempty"`
	Of      uint32 `json:"of,omitempty"`
	Wished  bool   `json:"wished,omitempty"`
	Follows bool   `json:"follows,omitempty"`

	Total  int     `json:"total,omitempty"`
	Before int     `json:"before,omitempty"`
	Taken  int     `json:"taken,omitempty"`
	PID    int     `json:"pid,omitempty"`
	Target int     `json:"target,omitempty"`
	For    float64 `json:"for,omitempty"` // seconds
	Text   string  `json:"text,omitempty"`
}

func (l *line) encode() []byte {
	text, err := json.Marshal(l)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return append(text, '\n')
}

// mismatch returns an error for a line of another version, or nil. It ignores fields that
// this version does not have.
func mismatch(text []byte, theirs, own string) error {
	var l struct {
		Version int
		Text    string
	}
	if json.Unmarshal(text, &l) != nil || l.Version == 0 || l.Version == Version {
		return nil
	}
	err := fmt.Errorf("%s has lines of version %d, %s has gompi %s with version %d: rebuild the older one", theirs, l.Version, own, version.Gompi(), Version)
	if l.Text != "" {
		err = fmt.Errorf("%w (%s)", err, clip(l.Text))
	}
	return err
}

// decode parses and checks a line.
func decode(text []byte) (*line, error) {
	l := &line{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(l)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			err = errors.New("data after the object")
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("pool: %w", err)
	case len(l.Text) > maxText || len(l.Program) > maxText:
		return nil, fmt.Errorf("pool: a text of %d bytes, at most %d allowed", max(len(l.Text), len(l.Program)), maxText)
	case l.Size < 0 || l.Size > rm.MostProcesses || l.Min < 0 || l.Min > l.Size || l.Start < 0 || l.Start > rm.MostProcesses:
		return nil, fmt.Errorf("pool: size %d, at least %d, to start with %d: 0 to %d allowed", l.Size, l.Min, l.Start, rm.MostProcesses)
	case !(l.Limit >= 0 && l.Limit < 1e9):
		return nil, fmt.Errorf("pool: a limit of %g s", l.Limit)
	}
	return l, nil
}

// col returns the COL of a line; nil: it has none.
func (l *line) col() (*rm.COL, error) {
	if len(l.COL) == 0 {
		return nil, nil
	}
	return rm.ParseCOL(l.COL)
}

// colText encodes a COL for a line.
func colText(c *rm.COL) json.RawMessage {
	if c == nil {
		return nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return text
}

// scan returns a reader of the lines of a connection.
func scan(c net.Conn) *bufio.Scanner {
	in := bufio.NewScanner(c)
	in.Buffer(make([]byte, 0, 512), MaxLine)
	return in
}

// clip shortens a text for people.
func clip(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return text
}
