// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// system returns the root file system. It reads by system calls only: package os adds
// files that the kernel generates to Go's poller, which costs five times as much as
// opening them.
func system() fs.FS { return files{} }

type files struct{}

// Open implements fs.FS.
func (files) Open(name string) (fs.File, error) {
	fd, err := open(name)
	if err != nil {
		return nil, err
	}
	return &kernelFile{name: name, fd: fd}, nil
}

// ReadFile implements fs.ReadFileFS.
func (files) ReadFile(name string) ([]byte, error) {
	fd, err := open(name)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	text := make([]byte, 0, 4096)
	for {
		n, err := retryEINTR(func() (int, error) { return unix.Read(fd, text[len(text):cap(text)]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		if n == 0 {
			return text, nil
		}
		if text = text[:len(text)+n]; len(text) == cap(text) {
			text = append(text, 0)[:len(text)]
		}
	}
}

func open(name string) (int, error) {
	fd, err := retryEINTR(func() (int, error) { return unix.Open("/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// retryEINTR repeats a call while a signal interrupts it.
func retryEINTR(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}

// kernelFile is a file whose whole text the kernel generates when it is read.
type kernelFile struct {
	name string
	fd   int
	at   int64
}

// ReadAt implements io.ReaderAt. A short read is the end of the file.
func (f *kernelFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := retryEINTR(func() (int, error) { return unix.Pread(f.fd, b, off) })
	if err != nil {
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: err}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *kernelFile) Read(b []byte) (int, error) {
	n, err := f.ReadAt(b, f.at)
	f.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (f *kernelFile) Stat() (fs.FileInfo, error) {
	return nil, &fs.PathError{Op: "stat", Path: f.name, Err: fs.ErrInvalid}
}

func (f *kernelFile) Close() error { return unix.Close(f.fd) }
