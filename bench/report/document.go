// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"os"
	"strings"
)

// Tables of a document that a command makes stand between two lines.
const (
	tablesBegin = "<!-- tables: %s -->\n"
	tablesEnd   = "<!-- end of tables -->\n"
)

// WriteTables puts tables that a command makes into the document of that path, in place of
// what stands there between the lines that name the command.
func WriteTables(path, command, tables string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	out, err := between(string(text), command, tables)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(out), 0o666)
}

func between(doc, command, tables string) (string, error) {
	begin := fmt.Sprintf(tablesBegin, command)
	before, rest, ok := strings.Cut(doc, begin)
	_, after, also := strings.Cut(rest, tablesEnd)
	if !ok || !also {
		return "", fmt.Errorf("no lines %q and %q behind it", strings.TrimSpace(begin), strings.TrimSpace(tablesEnd))
	}
	return before + begin + tables + "\n" + tablesEnd + after, nil
}
