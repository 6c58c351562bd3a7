// SPDX-License-Identifier: Apache-2.0

package remote

// unsafe: atomic instructions need the addresses of numbers in a region, and operands have
// any type.

import (
	"sync/atomic"
	"unsafe"

	"gompi/internal/base/fault"
	"gompi/internal/data/dtype"
	"gompi/internal/data/kernel"
)

// LoadWord reads 8 aligned bytes of shared memory atomically. ok is false if they are not
// in mem.
func LoadWord(mem []byte, off int64) (v uint64, ok bool) {
	p := numberAt(mem, off, 8)
	if p == nil {
		return 0, false
	}
	return atomic.LoadUint64((*uint64)(p)), true
}

// numberAt returns the address of an aligned number of w bytes, or nil.
func numberAt(mem []byte, off, w int64) unsafe.Pointer {
	if off < 0 || off > int64(len(mem))-w {
		return nil
	}
	p := unsafe.Add(unsafe.Pointer(unsafe.SliceData(mem)), off)
	if uintptr(p)%uintptr(w) != 0 {
		return nil
	}
	return p
}

// FetchOp is GetAccumulate for one number of kind k at byte off of a target that is CPU. It
// stores at result what was there before; result may be nil. operand and result point to
// numbers of that kind; NoOp ignores operand. It reports whether it could: the number must
// lie in the target, be aligned and have 4 or 8 bytes, and k must have the operation.
func (t *Target) FetchOp(off int64, k dtype.Kind, op kernel.Op, operand, result unsafe.Pointer) bool {
	w := widthOf(k)
	if w == 0 || op != kernel.Replace && op != kernel.NoOp && kernel.Of(op, k) == nil {
		return false
	}
	p := numberAt(t.mem, off, w)
	if p == nil {
		return false
	}
	visit, f := t.s.enter(t.ctl)
	if f != nil {
		return false // the general call reports the error
	}
	if w == 8 {
		var v uint64
		if op != kernel.NoOp {
			v = *(*uint64)(operand)
		}
		v = fetch64((*uint64)(p), op, k, v)
		if result != nil {
			*(*uint64)(result) = v
		}
	} else {
		var v uint32
		if op != kernel.NoOp {
			v = *(*uint32)(operand)
		}
		v = fetch32((*uint32)(p), op, k, v)
		if result != nil {
			*(*uint32)(result) = v
		}
	}
	t.s.leaveVisit(t.ctl, visit)
	return true
}

// CompareSwap stores value at byte off of a target that is CPU if the number there equals
// compare, and stores at result what was there before. All have one kind. It reports
// whether it could, as FetchOp does.
func (t *Target) CompareSwap(off int64, k dtype.Kind, compare, value, result unsafe.Pointer) bool {
	w := widthOf(k)
	if w == 0 {
		return false
	}
	p := numberAt(t.mem, off, w)
	if p == nil {
		return false
	}
	visit, f := t.s.enter(t.ctl)
	if f != nil {
		return false // the general call reports the error
	}
	if w == 8 {
		*(*uint64)(result) = swap64((*uint64)(p), *(*uint64)(compare), *(*uint64)(value))
	} else {
		*(*uint32)(result) = swap32((*uint32)(p), *(*uint32)(compare), *(*uint32)(value))
	}
	t.s.leaveVisit(t.ctl, visit)
	return true
}

// Combine is GetAccumulate for contiguous numbers of kind k from byte off of a target that
// is CPU. operand is empty for NoOp; result is empty if the old values are not wanted. It
// reports whether it could: the numbers must lie in the target, be aligned and have 4 or 8
// bytes, and k must have the operation.
func (t *Target) Combine(off int64, k dtype.Kind, op kernel.Op, operand, result []byte) (could bool, f *fault.Fault) {
	n, w := int64(max(len(operand), len(result))), widthOf(k)
	if w == 0 || n == 0 || n%w != 0 || off > int64(len(t.mem))-n || numberAt(t.mem, off, w) == nil {
		return false, nil
	}
	o, ok := operationOf(op, k, w)
	if !ok || op != kernel.NoOp && int64(len(operand)) != n || len(result) > 0 && int64(len(result)) != n {
		return false, nil
	}
	if !o.few(n) {
		return true, mapped{t}.changeGuarded(off, n, &o, operand, result)
	}
	visit, f := t.s.enter(t.ctl)
	if f != nil {
		return true, f
	}
	o.applyAtomic(t.mem[off:][:n], operand, result)
	t.s.leaveVisit(t.ctl, visit)
	return true, nil
}

// swapAtomic is CompareSwap for one aligned number.
func (o *operation) swapAtomic(target, compare, value, result []byte) {
	p, c := unsafe.Pointer(unsafe.SliceData(target)), unsafe.Pointer(unsafe.SliceData(compare))
	v, r := unsafe.Pointer(unsafe.SliceData(value)), unsafe.Pointer(unsafe.SliceData(result))
	if o.width == 8 {
		*(*uint64)(r) = swap64((*uint64)(p), *(*uint64)(c), *(*uint64)(v))
	} else {
		*(*uint32)(r) = swap32((*uint32)(p), *(*uint32)(c), *(*uint32)(v))
	}
}

// swapGuarded is CompareSwap for an element while all other accesses are excluded.
func swapGuarded(target, compare, value, result []byte) {
	copy(result, target)
	if string(result) == string(compare) {
		copy(target, value)
	}
}

// swap64 is a compare-and-swap that returns the old value.
func swap64(p *uint64, compare, value uint64) (old uint64) {
	for {
		if atomic.CompareAndSwapUint64(p, compare, value) {
			return compare
		}
		if old = atomic.LoadUint64(p); old != compare {
			return old
		}
	}
}

func swap32(p *uint32, compare, value uint32) (old uint32) {
	for {
		if atomic.CompareAndSwapUint32(p, compare, value) {
			return compare
		}
		if old = atomic.LoadUint32(p); old != compare {
			return old
		}
	}
}

// fetch64 changes one number and returns the old value.
func fetch64(p *uint64, op kernel.Op, k dtype.Kind, v uint64) (old uint64) {
	switch op {
	case kernel.NoOp:
		return atomic.LoadUint64(p)
	case kernel.Replace:
		return atomic.SwapUint64(p, v)
	case kernel.BitAnd:
		return atomic.AndUint64(p, v)
	case kernel.BitOr:
		return atomic.OrUint64(p, v)
	case kernel.Sum:
		if k != dtype.Float64 {
			return atomic.AddUint64(p, v) - v
		}
	}
	for {
		old = atomic.LoadUint64(p)
		sum := combine64(op, k, v, old)
		if sum == old || atomic.CompareAndSwapUint64(p, old, sum) {
			return old
		}
	}
}

// fetch32 is fetch64 for 4 bytes.
func fetch32(p *uint32, op kernel.Op, k dtype.Kind, v uint32) (old uint32) {
	switch op {
	case kernel.NoOp:
		return atomic.LoadUint32(p)
	case kernel.Replace:
		return atomic.SwapUint32(p, v)
	case kernel.BitAnd:
		return atomic.AndUint32(p, v)
	case kernel.BitOr:
		return atomic.OrUint32(p, v)
	case kernel.Sum:
		if k != dtype.Float32 {
			return atomic.AddUint32(p, v) - v
		}
	}
	for {
		old = atomic.LoadUint32(p)
		sum := combine32(op, k, v, old)
		if sum == old || atomic.CompareAndSwapUint32(p, old, sum) {
			return old
		}
	}
}

// applyAtomic changes a run of whole, aligned numbers one at a time. operand has as many
// bytes as target, or none for NoOp; result has as many, or none.
func (o *operation) applyAtomic(target, operand, result []byte) {
	t, a, r := unsafe.Pointer(unsafe.SliceData(target)), unsafe.Pointer(unsafe.SliceData(operand)), unsafe.Pointer(unsafe.SliceData(result))
	n := uintptr(len(target))
	if o.width == 8 {
		for i := uintptr(0); i < n; i += 8 {
			var v uint64
			if len(operand) > 0 {
				v = *(*uint64)(unsafe.Add(a, i))
			}
			v = fetch64((*uint64)(unsafe.Add(t, i)), o.op, o.kind, v)
			if len(result) > 0 {
				*(*uint64)(unsafe.Add(r, i)) = v
			}
		}
		return
	}
	for i := uintptr(0); i < n; i += 4 {
		var v uint32
		if len(operand) > 0 {
			v = *(*uint32)(unsafe.Add(a, i))
		}
		v = fetch32((*uint32)(unsafe.Add(t, i)), o.op, o.kind, v)
		if len(result) > 0 {
			*(*uint32)(unsafe.Add(r, i)) = v
		}
	}
}

// applyGuarded changes a run of whole elements while all other accesses are excluded.
func (o *operation) applyGuarded(target, operand, result []byte) {
	copy(result, target)
	switch o.op {
	case kernel.NoOp:
	case kernel.Replace:
		copy(target, operand)
	default:
		t := unsafe.Pointer(unsafe.SliceData(target))
		o.fn(t, unsafe.Pointer(unsafe.SliceData(operand)), t, int64(len(target))/o.unit)
	}
}
