// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// OwnerError is the error of a socket that belongs to another user. Nothing was sent to it.
type OwnerError struct{ Owner, Own int } // user ids

func (e *OwnerError) Error() string {
	return fmt.Sprintf("the socket there is of user %d, and this process of user %d: only a socket of the same user, or of root, is spoken to", e.Owner, e.Own)
}

// CheckOwner refuses a connection whose other end belongs to another user. The other end must
// belong to the effective user of this process, or to root. The tools of root may talk to anybody.
// An end that connects calls it before it sends anything, since any user may listen at the address
// of an abstract socket.
func CheckOwner(fd int, tool bool) error {
	uid, _, err := PeerOf(fd)
	if err != nil {
		return fmt.Errorf("whose socket it is: %w", err)
	}
	return mayTalk(uid, os.Geteuid(), tool)
}

func mayTalk(owner, own int, tool bool) error {
	if owner == own || owner == 0 || tool && own == 0 {
		return nil
	}
	return &OwnerError{Owner: owner, Own: own}
}

// CheckOwnerOf is CheckOwner for a connection of package net.
func CheckOwnerOf(conn syscall.Conn, tool bool) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var why error
	err = raw.Control(func(fd uintptr) { why = CheckOwner(int(fd), tool) })
	return errors.Join(err, why)
}
