// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	maxLine   = 64 << 10  // bytes; the Matrix Market format allows 1024
	maxWindow = 128 << 20 // bytes that a zstd file may ask for
)

// lines reads a text file line by line and knows where it is, so that every
// error can say so.
type lines struct {
	name  string
	n     int // number of the line read last, from 1
	r     *bufio.Reader
	close []func() error
}

// openLines opens a text file, plain or compressed by gzip or zstd: its first
// bytes tell, not its name.
func openLines(name string) (*lines, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	l, err := newLines(name, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	l.close = append(l.close, f.Close)
	return l, nil
}

func newLines(name string, f io.Reader) (*lines, error) {
	l := &lines{name: name, r: bufio.NewReaderSize(f, maxLine)}
	magic, _ := l.r.Peek(6)
	for _, p := range packings {
		if strings.HasPrefix(string(magic), p.magic) {
			return nil, l.errorAt(1, "the file is %s: unpack it first (%s)", p.is, p.how)
		}
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(l.r)
		if err != nil {
			return nil, l.broken(1, err)
		}
		l.r = bufio.NewReaderSize(z, maxLine)
		l.close = append(l.close, z.Close)
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(l.r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, l.broken(1, err)
		}
		l.r = bufio.NewReaderSize(z, maxLine)
		l.close = append(l.close, z.IOReadCloser().Close)
	}
	if b, _ := l.r.Peek(tarMagic + 5); len(b) == tarMagic+5 && string(b[tarMagic:]) == "ustar" {
		l.Close()
		return nil, l.errorAt(1, "the file is a tar archive: unpack it first (tar -xf), the matrix is a file in it")
	}
	return l, nil
}

// packings are what matrices also come in, by the first bytes.
var packings = []struct{ magic, is, how string }{
	{"BZh", "compressed by bzip2", "bunzip2"},
	{"\xfd7zXZ\x00", "compressed by xz", "unxz"},
	{"PK\x03\x04", "a zip archive", "unzip"},
	{"\x1f\x9d", "compressed by compress", "uncompress"},
	{"\x04\x22\x4d\x18", "compressed by lz4", "unlz4"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive", "7z x"},
}

// tarMagic is where the head of a tar archive says what it is.
const tarMagic = 257

func (l *lines) Close() error {
	var err error
	for _, f := range l.close {
		err = errors.Join(err, f())
	}
	return err
}

// next returns the next line without white space at its ends, valid until the
// next call. At the end of the file the error is io.EOF itself.
func (l *lines) next() ([]byte, error) {
	l.n++
	b, err := l.r.ReadSlice('\n')
	switch {
	case err == nil || err == io.EOF && len(b) > 0:
		return bytes.TrimSpace(b), nil
	case err == io.EOF:
		return nil, err
	case err == bufio.ErrBufferFull:
		return nil, l.errorf("the line is longer than %d bytes", maxLine)
	}
	return nil, l.broken(l.n, err)
}

// data is next that passes over blank lines and comments.
func (l *lines) data() ([]byte, error) {
	for {
		b, err := l.next()
		if err != nil || len(b) > 0 && b[0] != '%' {
			return b, err
		}
	}
}

// broken is an error below the text.
func (l *lines) broken(line int, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return l.errorAt(line, "the compressed file is cut off")
	}
	if line > 1 && (errors.Is(err, gzip.ErrHeader) || errors.Is(err, zstd.ErrMagicMismatch)) {
		return l.errorAt(line, "behind the compressed text the file has bytes that are not compressed: it is damaged, or two files in one")
	}
	return l.errorAt(line, "%w", err)
}

// errorf is an error in the line read last.
func (l *lines) errorf(format string, args ...any) error { return l.errorAt(l.n, format, args...) }

func (l *lines) errorAt(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", l.name, line, fmt.Errorf(format, args...))
}

// field cuts the first word off a line.
func field(b []byte) (word, rest []byte) {
	i := 0
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	j := i
	for j < len(b) && !isSpace(b[j]) {
		j++
	}
	return b[i:j], b[j:]
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// quote shows a line of an unknown file in a message.
func quote(b []byte) string {
	const most = 60
	if len(b) > most {
		return fmt.Sprintf("%q...", b[:most])
	}
	return fmt.Sprintf("%q", b)
}
