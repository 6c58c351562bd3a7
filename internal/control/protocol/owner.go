// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// OwnerError: a socket is another user's, to whom nothing is to be said.
type OwnerError struct{ Owner, Own int } // user ids

func (e *OwnerError) Error() string {
	return fmt.Sprintf("the socket there is of user %d, and this process of user %d: only a socket of the same user, or of root, is spoken to", e.Owner, e.Own)
}

// CheckOwner refuses the socket of another user at the other end of a connection, whose
// descriptor this is: it must be this process's effective user's, or root's. Root's tools
// may talk to any. Whoever connects calls it before it says anything: the names of abstract
// sockets are free for all users.
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

// CheckOwnerOf is CheckOwner of a connection of package net.
func CheckOwnerOf(conn syscall.Conn, tool bool) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var why error
	err = raw.Control(func(fd uintptr) { why = CheckOwner(int(fd), tool) })
	return errors.Join(err, why)
}
