// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package control

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"gompi/internal/wire"
)

// A socket without what Linux adds: no descriptors, and only who may open its
// file is at the other end.

const passes = false

var errManyRights = errors.ErrUnsupported

func oobBytes() int { return 0 }

// Address is the socket of a job's agent, a file that ends with it.
func Address(job wire.JobID) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("gompi-%016x", uint64(job)))
}

func (d *fdReader) receive(b []byte) (int, error) { return d.conn.Read(b) }

func closeFDs([]int) {}

func writeWith(conn *net.UnixConn, data []byte, _ *files) (int, error) { return conn.Write(data) }

// follow: the end of the connection has to do.
func (p *peer) follow() {}

func (p *peer) unfollow() {}

func credentials(*net.UnixConn) (uid, pid int, err error) { return os.Geteuid(), os.Getpid(), nil }
