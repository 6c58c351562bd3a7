// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
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
		o, err := newRMSocket(path)
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
		// A second socket takes nothing away from the first.
		if _, err := newRMSocket(path); err == nil {
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
	if _, err := newRMSocket(path); err == nil || !strings.Contains(err.Error(), "no secret") {
		t.Errorf("another's file: %v", err)
	}
	if mine, err := os.ReadFile(path + secretEnd); err != nil || string(mine) != "mine\n" {
		t.Errorf("another's file is %q, %v", mine, err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the socket is left")
	}
}

// A program that has connected can read the secret, and a file of the secret has all of it.
func TestOfficeSecretIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager")
	for range 200 {
		var over atomic.Bool
		seen := make(chan string, 1)
		go func() {
			c, err := net.Dial("unix", path)
			for err != nil && !over.Load() {
				if half, err := os.ReadFile(path + secretEnd); err == nil && len(half) != secretBytes {
					seen <- string(half)
					return
				}
				c, err = net.Dial("unix", path)
			}
			secret, _ := os.ReadFile(path + secretEnd)
			if err == nil {
				c.Close()
			}
			seen <- string(secret)
		}()
		o, err := newRMSocket(path)
		over.Store(true)
		secret := <-seen
		if err != nil {
			t.Fatal(err)
		}
		o.close()
		if strings.TrimSpace(secret) != o.secret {
			t.Fatalf("the secret is %q when the socket takes connections, want %q", secret, o.secret)
		}
	}
}

// A socket that is bound and does not listen yet is not taken away.
func TestOfficeBegins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager")
	fd, err := bindAlone(path)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	second := make(chan error, 1)
	go func() {
		_, err := newRMSocket(path)
		second <- err
	}()
	l, err := listen(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := <-second; err == nil || !strings.Contains(err.Error(), "another gompirun") {
		t.Errorf("two have the socket: %v", err)
	}
}
