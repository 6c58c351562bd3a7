// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxBytes is the largest size of one message, in bytes.
const MaxBytes = 1 << 36

// ParseBytes reads a comma list of sizes with the binary suffixes K, M and G:
// "8,4K,64M".
func ParseBytes(list string) ([]int, error) {
	var ns []int
	for _, s := range strings.Split(list, ",") {
		digits, shift := s, 0
		for i, suffix := range []string{"K", "M", "G"} {
			if d, ok := strings.CutSuffix(s, suffix); ok {
				digits, shift = d, 10*(i+1)
			}
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n > MaxBytes>>shift {
			return nil, fmt.Errorf("bench: size %q: want a number up to %dG, with K, M or G", s, MaxBytes>>30)
		}
		ns = append(ns, int(n)<<shift)
	}
	return ns, nil
}
