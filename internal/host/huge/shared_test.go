// SPDX-License-Identifier: Apache-2.0

//go:build linux

package huge

import "testing"

// Huge pages of files in memory are the administrator's: off is off, and a kernel that makes
// them by itself is not told to.
func TestShared(t *testing.T) {
	const madvise, never = "always [madvise] never\n", "always within_size advise [never] deny force\n"
	for _, c := range []struct {
		enabled, shmem string
		want           Mode
	}{
		{madvise, never, Collapsed},
		{"[always] madvise never\n", never, Collapsed},
		{"always madvise [never]\n", never, Never},
		{"always madvise [never]\n", "[always] within_size advise never deny force\n", Never},
		{madvise, "always within_size advise never [deny] force\n", Never},
		{madvise, "always within_size [advise] never deny force\n", Advised},
		{madvise, "always [within_size] advise never deny force\n", Advised},
		{madvise, "[always] within_size advise never deny force\n", Advised},
		{madvise, "", Never},
		{"", never, Never},
	} {
		if got := sharedMode(c.enabled, c.shmem); got != c.want {
			t.Errorf("enabled %q, shmem_enabled %q: way %d, want %d", c.enabled, c.shmem, got, c.want)
		}
	}
}
