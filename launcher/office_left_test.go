// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What a gompirun has left that was killed between two steps is no hindrance, another's
// files are not touched, and the socket is the user's alone whatever the umask is.
func TestOfficeLeftovers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager")
	for name, left := range map[string]string{"written": strings.Repeat("0", secretBytes-1) + "\n", "begun": ""} {
		if err := os.WriteFile(path+secretEnd, []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		old := unix.Umask(0)
		o, err := newOffice(path)
		unix.Umask(old)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
		if secret, err := os.ReadFile(path + secretEnd); err != nil || strings.TrimSpace(string(secret)) != o.secret {
			t.Errorf("%s: the secret is %q, %v", name, secret, err)
		}
		// A second office takes nothing away from the first.
		if _, err := newOffice(path); err == nil {
			t.Errorf("%s: two have the socket", name)
		}
		if secret, err := os.ReadFile(path + secretEnd); err != nil || strings.TrimSpace(string(secret)) != o.secret {
			t.Errorf("%s: the secret is %q, %v, after another has tried", name, secret, err)
		}
		o.close()
		for _, name := range []string{path, path + secretEnd} {
			if _, err := os.Stat(name); err == nil {
				t.Errorf("%s is left", name)
			}
		}
	}
	if err := os.WriteFile(path+secretEnd, []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := newOffice(path); err == nil || !strings.Contains(err.Error(), "no secret") {
		t.Errorf("another's file: %v", err)
	}
	if mine, err := os.ReadFile(path + secretEnd); err != nil || string(mine) != "mine\n" {
		t.Errorf("another's file is %q, %v", mine, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is left")
	}
}
