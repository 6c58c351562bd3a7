// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"fmt"
	"os"
)

// A file of a stage is written and read in pieces of mostPiece bytes, and continues at its
// beginning after mostFile: the disk does not fill during a long run.
const (
	mostPiece = 4 << 20
	mostFile  = 64 << 20
)

// file is the file that a rank writes or reads in a stage. It has no name, so it ends with
// the process.
type file struct {
	f      *os.File
	piece  []byte
	at, of int64
}

// newFile makes a file for operations of a number of bytes.
func newFile(dir string, k Kind, bytes int) (*file, error) {
	f, err := os.CreateTemp(dir, "gompi-stage-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	x := &file{f: f, piece: make([]byte, min(bytes, mostPiece)), of: int64(min(bytes, mostFile))}
	if k == Read {
		err = x.move(f.WriteAt, int(x.of))
		x.at = 0
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return x, nil
}

// move writes or reads a number of bytes.
func (x *file) move(do func(b []byte, at int64) (int, error), bytes int) error {
	for bytes > 0 {
		n := min(bytes, len(x.piece), int(x.of-x.at))
		if _, err := do(x.piece[:n], x.at); err != nil {
			return fmt.Errorf("file of a stage: %w", err)
		}
		bytes -= n
		if x.at += int64(n); x.at == x.of {
			x.at = 0
		}
	}
	return nil
}
