// SPDX-License-Identifier: Apache-2.0

package cachedist

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

// unknownCache is the assumed size of a processor's private cache if the kernel does
// not say.
const unknownCache = 1 << 20

// PrivateCacheBytes returns the size of the cache that only one core uses: the level-2
// cache, as the kernel reports it.
var PrivateCacheBytes = sync.OnceValue(func() int64 {
	const dir = "/sys/devices/system/cpu/cpu0/cache/index2/"
	level, _ := os.ReadFile(dir + "level")
	size, err := os.ReadFile(dir + "size")
	if err != nil || strings.TrimSpace(string(level)) != "2" {
		return unknownCache
	}
	if n, ok := parseSize(string(size)); ok {
		return n
	}
	return unknownCache
})

// parseSize parses a size in the kernel's form, such as 1024K.
func parseSize(text string) (int64, bool) {
	text = strings.TrimSpace(text)
	unit := int64(1)
	switch {
	case strings.HasSuffix(text, "K"):
		unit = 1 << 10
	case strings.HasSuffix(text, "M"):
		unit = 1 << 20
	}
	n, err := strconv.ParseInt(strings.TrimRight(text, "KM"), 10, 32)
	return n * unit, err == nil && n > 0
}
