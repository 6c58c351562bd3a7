// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"gompi/internal/launch"
)

// lookup finds the file to execute for a program's name, as a shell does, and also in the
// directory that the processes start in: `gompirun cg` means ./cg if no cg is on the path.
// The result is absolute.
func lookup(name, wdir, searchPath string) (string, error) {
	if wdir == "" {
		var err error
		if wdir, err = os.Getwd(); err != nil {
			return "", dirError(os.Getenv("PWD"), err)
		}
	}
	wdir, err := filepath.Abs(wdir)
	if err != nil {
		return "", &launch.StartError{Status: launch.ExitFailure, Err: err}
	}
	if st, err := os.Stat(wdir); err != nil {
		return "", dirError(wdir, err)
	} else if !st.IsDir() {
		return "", &launch.StartError{Status: launch.ExitFailure, Err: fmt.Errorf("%s is not a directory", wdir)}
	}
	in := func(dir string) string {
		if filepath.IsAbs(name) {
			return name
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(wdir, dir)
		}
		return filepath.Join(dir, name)
	}
	var dirs []string
	if !strings.Contains(name, "/") && name != "." && name != ".." {
		dirs = filepath.SplitList(searchPath)
	}
	var denied error
	for _, dir := range append(dirs, wdir) {
		file := in(dir)
		err := executable(file)
		if err == nil {
			return file, nil
		}
		if denied == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			denied = fmt.Errorf("cannot run %s: %w%s", file, err, sourceHint(name, file))
		}
	}
	switch {
	case denied != nil:
		return "", &launch.StartError{Status: launch.ExitNotRunable, Err: denied}
	case strings.Contains(name, "/"):
		return "", &launch.StartError{Status: launch.ExitNotFound, Err: fmt.Errorf("no such program: %s", in(wdir))}
	}
	return "", &launch.StartError{Status: launch.ExitNotFound, Err: fmt.Errorf("no such program: %s is neither on the PATH nor in %s", name, wdir)}
}

// dirError is the error for processes that cannot start in their directory.
func dirError(dir string, err error) error {
	text := fmt.Errorf("the directory in which processes start, %s: %w", dir, err)
	if errors.Is(err, fs.ErrNotExist) {
		text = fmt.Errorf("the directory in which processes start, %s, is not there: %w", dir, err)
	}
	return &launch.StartError{Status: launch.ExitFailure, Err: text}
}

// missingDir returns an error if a directory does not exist; "" is that of gompirun.
func missingDir(dir string) error {
	if dir != "" {
		_, err := os.Stat(dir)
		return err
	}
	_, err := os.Getwd()
	return err
}

// sourceHint tells how to run a file or directory of Go source.
func sourceHint(name, file string) string {
	is := strings.HasSuffix(file, ".go")
	if !is {
		found, _ := filepath.Glob(filepath.Join(file, "*.go"))
		is = len(found) > 0
		if is && !filepath.IsAbs(name) && !strings.HasPrefix(name, ".") {
			name = "./" + name
		}
	}
	if !is {
		return ""
	}
	return fmt.Sprintf("; it is Go source: build it, or run gompirun [flags] go run %s", name)
}

func executable(file string) error {
	st, err := os.Stat(file)
	switch {
	case err != nil:
		return errors.Unwrap(err)
	case st.IsDir():
		return errors.New("it is a directory")
	case !st.Mode().IsRegular():
		return errors.New("it is no regular file")
	}
	// Root passes access(2) only if some x bit is set, which execve requires.
	if unix.Access(file, unix.X_OK) != nil {
		return errors.New("it is not executable")
	}
	return nil
}
