// SPDX-License-Identifier: Apache-2.0

package cachedist

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

// unknownCache is what a processor's own cache is taken to hold where nobody says.
const unknownCache = 1 << 20

// OwnCache is how many bytes the cache holds that a processor, or its core, does not share
// with others: the second level, as the kernel names it.
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

// parseSize reads a size as the kernel writes it, such as 1024K.
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
