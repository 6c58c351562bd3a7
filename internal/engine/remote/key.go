// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"encoding/binary"
	"fmt"

	"gompi/internal/base/wire"
	"gompi/internal/engine/shmem"
	"gompi/transport"
)

// keyKind is the path that a key is for. A process skips kinds that it does not know.
type keyKind uint8

const (
	// keyShared: memory of a heap that processes of the host map. The key has the owner's
	// job and serial (uint32), and the block's name.
	keyShared keyKind = 1 + iota
	// keyCopied: memory that processes of the host copy from and to. The key has the value
	// of SingleCopy.Register and the two numbers of its Proof.
	keyCopied
	// keyPosted: memory that devices reach. The key has the bytes of RemoteMemory.Expose.
	keyPosted

	keySharedBytes = 12 + shmem.NameBytes
	keyCopiedBytes = 24
)

// keysBytes is the room for keys in a Desc.
const keysBytes = DescBytes - descKeys

const _ = uint(keysBytes - 2 - keySharedBytes)

// keys are what paths need to reach a region's memory. Each has a kind, a length and bytes
// that only its path understands. A process uses the first path by which it can reach the
// memory.
type keys struct {
	n uint8
	b [keysBytes]byte
}

// room returns how long another key may be.
func (k *keys) room() int { return len(k.b) - int(k.n) - 2 }

// add appends a key and returns its bytes.
func (k *keys) add(kind keyKind, n int) []byte {
	at := int(k.n)
	k.b[at], k.b[at+1] = byte(kind), byte(n)
	k.n += uint8(2 + n)
	return k.b[at+2:][:n]
}

// all returns the bytes of all keys.
func (k *keys) all() []byte { return k.b[:k.n] }

// set takes n bytes of keys from a description.
func (k *keys) set(n uint8, b []byte) error {
	if int(n) > len(k.b) {
		return fmt.Errorf("%w: description with %d bytes of keys, %d at most", transport.ErrProtocol, n, len(k.b))
	}
	k.n = n
	copy(k.b[:n], b)
	for rest := k.all(); len(rest) > 0; {
		if len(rest) < 2 || int(rest[1]) > len(rest)-2 || rest[0] == 0 {
			return fmt.Errorf("%w: description with a key that is cut off", transport.ErrProtocol)
		}
		rest = rest[2+rest[1]:]
	}
	return nil
}

// next takes one key off the front; kind 0 means that there is none.
func (k *keys) next(from []byte) (kind keyKind, key, rest []byte) {
	if len(from) == 0 {
		return 0, nil, nil
	}
	n := 2 + int(from[1])
	return keyKind(from[0]), from[2:n], from[n:]
}

// share adds the place of memory that others of the host map.
func (d *description) share(n shmem.Name) {
	b := d.keys.add(keyShared, keySharedBytes)
	binary.LittleEndian.PutUint64(b, uint64(n.Owner.Job))
	binary.LittleEndian.PutUint32(b[8:], n.Owner.Serial)
	n.Put(b[12:])
}

// sharedName returns the place of shared memory.
func (d *description) sharedName() (n shmem.Name, err error) {
	for kind, key, rest := d.keys.next(d.keys.all()); kind != 0; kind, key, rest = d.keys.next(rest) {
		if kind != keyShared {
			continue
		}
		if len(key) != keySharedBytes {
			return n, fmt.Errorf("%w: name of %d bytes", transport.ErrProtocol, len(key))
		}
		le := binary.LittleEndian
		n = shmem.GetName(key[12:], wire.ProcID{Job: wire.JobID(le.Uint64(key)), Serial: le.Uint32(key[8:])})
		if n.Bytes != d.bytes {
			return shmem.Name{}, fmt.Errorf("%w: name of %d bytes of a region of %d", transport.ErrProtocol, n.Bytes, d.bytes)
		}
		return n, n.Check()
	}
	return n, nil
}

// expose adds what a process needs to copy the memory.
func (d *description) expose(key uint64, proof [2]uint64) {
	b := d.keys.add(keyCopied, keyCopiedBytes)
	binary.LittleEndian.PutUint64(b, key)
	binary.LittleEndian.PutUint64(b[8:], proof[0])
	binary.LittleEndian.PutUint64(b[16:], proof[1])
}

// openKey takes the path that a key is for, if this process can use it.
func (t *Target) openKey(kind keyKind, key []byte) bool {
	switch kind {
	case keyShared:
		return t.openShared()
	case keyCopied:
		return t.openCopied(key)
	case keyPosted:
		return t.openPosted(key)
	}
	return false
}

// openShared makes a mapped target.
func (t *Target) openShared() bool {
	m, mem, err := t.s.mapShared(&t.shared)
	if err != nil {
		return false
	}
	t.mapping, t.mem, t.path = m, mem, mapped{t}
	return true
}

// openCopied makes a target whose memory is copied, or that lies in this address space.
func (t *Target) openCopied(key []byte) bool {
	if len(key) != keyCopiedBytes {
		return false
	}
	le := binary.LittleEndian
	m, err := t.s.e.ReachMemory(t.proc, [2]uint64{le.Uint64(key[8:]), le.Uint64(key[16:])})
	if err != nil {
		return false
	}
	at := le.Uint64(key)
	switch b := m.Bytes(at); {
	case b != nil && int64(len(b)) < t.size:
		return false
	case b != nil:
		t.mem, t.path = b[:t.size:t.size], mapped{t}
		if t.isLive {
			t.readLive()
		}
	case m.Writable():
		t.memory, t.key, t.path = m, at, copied{t}
	default:
		t.memory, t.key, t.path = m, at, readable{served{t}}
	}
	return true
}
