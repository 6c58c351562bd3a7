// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"

	"gompi/sessions"
)

// Under registryKey stands a byte 0 and the registry. A registry that is longer than a value
// stands in pieces under volumeKey, which are put first; then a header is put under registryKey:
// a byte 1, a hash of the registry and its length. Pieces of another registry have other keys, so
// a newcomer never mixes two registries.
const (
	volumeBytes  = sessions.MaxValue
	volumeHeader = 1 + 8 + 8
	maxEncoded   = maxText + maxText/64 // bytes of a registry as it is put
)

func volumeKey(sum uint64, k int) string { return fmt.Sprintf("%s.%016x.%d", registryKey, sum, k) }

func sumOf(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

// putVolumes puts b under the keys of its pieces, the header last.
func putVolumes(b []byte, put func(key string, value []byte) error) error {
	if len(b) < sessions.MaxValue {
		return put(registryKey, append([]byte{0}, b...))
	}
	sum := sumOf(b)
	for k := 0; k*volumeBytes < len(b); k++ {
		if err := put(volumeKey(sum, k), b[k*volumeBytes:min((k+1)*volumeBytes, len(b))]); err != nil {
			return err
		}
	}
	head := binary.LittleEndian.AppendUint64([]byte{1}, sum)
	return put(registryKey, binary.LittleEndian.AppendUint64(head, uint64(len(b))))
}

// joinVolumes returns what putVolumes has put, by the value under registryKey.
func joinVolumes(head []byte, get func(keys ...string) ([][]byte, error)) ([]byte, error) {
	if len(head) > 0 && head[0] == 0 {
		return head[1:], nil
	}
	if len(head) != volumeHeader || head[0] != 1 {
		return nil, fmt.Errorf("the registry of the sources: %d bytes of a header", len(head))
	}
	sum, n := binary.LittleEndian.Uint64(head[1:]), binary.LittleEndian.Uint64(head[9:])
	if n == 0 || n > maxEncoded {
		return nil, fmt.Errorf("the registry of the sources: %d bytes, at most %d allowed", n, maxEncoded)
	}
	var keys []string
	for k := 0; uint64(k*volumeBytes) < n; k++ {
		keys = append(keys, volumeKey(sum, k))
	}
	values, err := get(keys...)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, n)
	for _, v := range values {
		b = append(b, v...)
	}
	if uint64(len(b)) != n || sumOf(b) != sum {
		return nil, errors.New("the registry of the sources: its pieces are not what its header says")
	}
	return b, nil
}

// registryIn reads the registry in a store, or waits for one. head is the value under its key.
func registryIn(ctx context.Context, store *sessions.Store) (text, head []byte, err error) {
	values, err := store.Get(ctx, true, registryKey)
	if err != nil {
		return nil, nil, err
	}
	text, err = joinVolumes(values[0], func(keys ...string) ([][]byte, error) { return store.Get(ctx, true, keys...) })
	return text, values[0], err
}
