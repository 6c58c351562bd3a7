// SPDX-License-Identifier: Apache-2.0

package rma

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/data/dtype"
	"gompi/internal/engine/remote"
	"gompi/mpi"
)

const (
	opExpose fault.Call = "rma.Expose"
	opOpen   fault.Call = "rma.Open"
	opClose  fault.Call = "Exposed.Close"
	opRead   fault.Call = "rma.Read"
	opWrite  fault.Call = "rma.Write"
)

// Key names exposed memory: bytes that may travel in any message or store, as
// they are (key[:], or as an element of a message) or as text. Whoever has the
// key may read and write the memory.
type Key [keyHead + remote.KeyBytes]byte

// keyHead is before the layers' part of a key: the version, and the unit of
// offsets, 4 bytes each.
const (
	keyHead    = 8
	keyVersion = 1
)

// MarshalText gives the key as text without white space.
func (k Key) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, k[:]), nil
}

// UnmarshalText is the reverse of MarshalText.
func (k *Key) UnmarshalText(text []byte) error {
	b, err := base64.RawURLEncoding.AppendDecode(nil, text)
	if err == nil && len(b) != len(k) {
		err = fmt.Errorf("%d bytes, want %d", len(b), len(k))
	}
	if err != nil {
		return fmt.Errorf("gompi: text of a key: %w", err)
	}
	copy(k[:], b)
	return nil
}

// String is the key's text.
func (k Key) String() string { return base64.RawURLEncoding.EncodeToString(k[:]) }

// Exposed is memory of this process that others access with its key.
type Exposed struct {
	region *remote.Region
	key    Key
}

// Expose makes mem accessible to every process that gets its key, until Close.
// No other process takes part. T holds no pointers; mem stays where it is, and
// is the caller's to use. Accesses of others are not synchronised with it.
// Local.
func Expose[T any](p *mpi.Process, mem []T) (*Exposed, error) {
	if bad := typeError[T](); bad != nil {
		return nil, apart(bad.class, opExpose, bad.why)
	}
	return expose(p, bytesOf(mem), sizeOf[T]())
}

// ExposeLive is Expose of memory that this process, and only it, goes on writing to while
// others read it: of what is written meanwhile a Read gives any mixture of before and
// after, byte by byte, and that is no data race. Writes of others are ErrArg. It is
// ErrNoMemory where the system does not let a process copy its own memory by a system
// call. Local.
func ExposeLive[T any](p *mpi.Process, mem []T) (*Exposed, error) {
	if bad := typeError[T](); bad != nil {
		return nil, apart(bad.class, opExpose, bad.why)
	}
	return exposeBy((*remote.Space).PublishLive, p, bytesOf(mem), sizeOf[T]())
}

// Stored reports whether others than the goroutines of this process may store to some of
// mem now: it is memory of a window of this process, attached to one, or that it has
// exposed. Whether what mem lies in is mapped elsewhere it does not tell. Local.
func Stored[T any](p *mpi.Process, mem []T) bool {
	return remote.Of(p.Self().Core().Comm().Engine).Stored(bytesOf(mem))
}

func expose(p *mpi.Process, mem []byte, unit int64) (*Exposed, error) {
	return exposeBy((*remote.Space).Publish, p, mem, unit)
}

func exposeBy(publish func(*remote.Space, []byte, *remote.Key) (*remote.Region, error), p *mpi.Process, mem []byte, unit int64) (*Exposed, error) {
	e := p.Self().Core().Comm().Engine
	x := new(Exposed)
	binary.LittleEndian.PutUint32(x.key[:], keyVersion)
	binary.LittleEndian.PutUint32(x.key[4:], uint32(unit))
	var err error
	if x.region, err = publish(remote.Of(e), mem, (*remote.Key)(x.key[keyHead:])); err != nil {
		return nil, apart(mpi.ErrNoMemory, opExpose, err)
	}
	return x, nil
}

// Key is what other processes Open the memory with.
func (x *Exposed) Key() Key { return x.key }

// Close ends the exposure: accesses that begin later are ErrClosed, and it
// returns when those under way are over. The second call is ErrClosed.
func (x *Exposed) Close() error {
	if f := x.region.Retire(opClose); f != nil {
		return apartFault(opClose, f)
	}
	return nil
}

// Remote is memory that a process has exposed, as another, or the same, accesses
// it. A Remote is a small handle; copies made by WithContext are the same one.
// Safe for all goroutines.
type Remote struct {
	*opened
	user context.Context // nil: calls do not give up
}

type opened struct {
	a    *remote.Accessor
	unit int64
}

// Open makes a Remote of a key. It does not need the owner to do anything, but
// may establish contact with it, and fails if it has ended.
func Open(p *mpi.Process, key Key) (*Remote, error) {
	le := binary.LittleEndian
	version, unit := le.Uint32(key[:]), int64(le.Uint32(key[4:]))
	if version != keyVersion || unit <= 0 {
		return nil, apart(mpi.ErrArg, opOpen, fmt.Errorf("it is no key: version %d, units of %d bytes", version, unit))
	}
	e := p.Self().Core().Comm().Engine
	k := remote.Key(key[keyHead:])
	a, f := remote.Of(e).Open(&k)
	if f != nil {
		return nil, apartFault(opOpen, f)
	}
	return &Remote{opened: &opened{a, unit}}, nil
}

// Bytes is the size of the memory.
func (r *Remote) Bytes() int64 { return r.a.Bytes() }

// DispUnit is the size of the elements in which offsets are counted: the
// owner's.
func (r *Remote) DispUnit() int64 { return r.unit }

// WithContext returns the same Remote for calls that give up when ctx ends.
func (r *Remote) WithContext(ctx context.Context) *Remote {
	if ctx == nil {
		panic("gompi: WithContext(nil)")
	}
	return &Remote{r.opened, ctx}
}

// Close gives the Remote up. No call may be under way. The memory stays exposed.
func (r *Remote) Close() error {
	r.a.Close()
	return nil
}

// Read copies elements of exposed memory from offset on into buf, which is
// valid at return. Outside the memory it is ErrRMARange, after its Close
// ErrClosed; both touch nothing.
func Read[T any](r *Remote, buf []T, offset int) error {
	return r.ReadBuf(mpi.BufOf(buf), offset, len(buf), mpi.TypeOf[T]())
}

// ReadBuf is Read of any elements: count elements of dt, displacement 0 of the
// first at offset, become b, which has the same number of bytes.
func (r *Remote) ReadBuf(b mpi.Buf, offset, count int, dt mpi.Datatype) error {
	at, err := r.place(opRead, b.Core(), offset, count, dt.Core())
	if err != nil {
		return err
	}
	if f := r.a.Get(b.Core(), at, r.user); f != nil {
		return apartFault(opRead, f)
	}
	return nil
}

// Write copies buf to exposed memory from offset on, and returns when it is
// there, see Read.
func Write[T any](r *Remote, buf []T, offset int) error {
	return r.WriteBuf(mpi.BufOf(buf), offset, len(buf), mpi.TypeOf[T]())
}

// WriteBuf is Write of any elements, see ReadBuf.
func (r *Remote) WriteBuf(b mpi.Buf, offset, count int, dt mpi.Datatype) error {
	if r.a.Live() {
		return apart(mpi.ErrArg, opWrite, errors.New("its owner has exposed the memory to be read only"))
	}
	at, err := r.place(opWrite, b.Core(), offset, count, dt.Core())
	if err != nil {
		return err
	}
	if f := r.a.Put(b.Core(), at, r.user); f != nil {
		return apartFault(opWrite, f)
	}
	return nil
}

// place checks an access and says where it is.
func (r *Remote) place(op fault.Call, b buffer.Buf, offset, count int, dt *dtype.Type) (at remote.Layout, err error) {
	size := r.a.Bytes()
	switch {
	case r.user != nil && r.user.Err() != nil:
		return at, apart(mpi.ErrCancelled, op, context.Cause(r.user))
	case b.Type.Err != nil:
		return at, apart(mpi.ErrType, op, b.Type.Err)
	case dt.Err != nil:
		return at, apart(mpi.ErrType, op, dt.Err)
	case count < 0:
		return at, apart(mpi.ErrCount, op, fmt.Errorf("%d elements", count))
	case offset < 0 || int64(offset) > size/r.unit:
		return at, apart(mpi.ErrRMARange, op, fmt.Errorf("offset %d, in units of %d bytes, of a memory of %d bytes", offset, r.unit, size))
	}
	return remote.Layout{Off: int64(offset) * r.unit, Type: dt, Count: int64(count)}, nil
}

// apart is an error of a call without a window.
func apart(class mpi.Class, op fault.Call, why error) error {
	var none *mpi.Comm
	return fail(none, class, op, mpi.ProcNull, -1, -1, "", why)
}

// apartFault is that of a call which the layers below could not do.
func apartFault(op fault.Call, f *fault.Fault) error {
	var none *mpi.Comm
	return none.Core().Fault(op, mpi.ProcNull, f)
}
