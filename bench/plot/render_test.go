// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// pageOfAll is a page with everything.
func pageOfAll(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, "all of it", everything()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPageAlone: a page is well-formed, and nothing in it loads anything.
func TestPageAlone(t *testing.T) {
	page := pageOfAll(t)
	d := xml.NewDecoder(bytes.NewReader(page))
	d.Entity = xml.HTMLEntity
	ids, svgs := map[string]bool{}, 0
	var links []string
	for {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		e, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		switch e.Name.Local {
		case "script", "link", "img", "image", "iframe", "object", "embed", "use", "base":
			t.Errorf("<%s>", e.Name.Local)
		case "svg":
			svgs++
		}
		for _, a := range e.Attr {
			switch name := a.Name.Local; {
			case name == "href" && strings.HasPrefix(a.Value, "#"):
				links = append(links, a.Value[1:])
			case name == "src" || name == "href" || name == "srcset" || strings.HasPrefix(name, "on") || strings.Contains(a.Value, "url("):
				t.Errorf("<%s %s=%q>", e.Name.Local, name, a.Value)
			case name == "id":
				if ids[a.Value] {
					t.Errorf("id %q stands twice", a.Value)
				}
				ids[a.Value] = true
			}
		}
	}
	for _, to := range links {
		if !ids[to] {
			t.Errorf("a link to #%s, which is not there", to)
		}
	}
	// Addresses are those that say what SVG is.
	for _, at := range regexp.MustCompile(`https?://[^" ]*`).FindAllString(string(page), -1) {
		if at != "http://www.w3.org/2000/svg" && at != "http://www.w3.org/1999/xlink" {
			t.Errorf("address %s", at)
		}
	}
	if bytes.Contains(page, []byte("@import")) || svgs < 40 {
		t.Errorf("%d drawings", svgs)
	}
}

// browser is a Chromium that draws pages without a screen; "": there is none.
func browser() string {
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "headless_shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	for _, name := range []string{"chromium_headless_shell-*/*/headless_shell", "chromium-*/*/chrome"} {
		if found, err := filepath.Glob(filepath.Join(home, ".cache/ms-playwright", name)); err == nil && len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// look has a browser say where the texts of each drawing are: those that lie over another
// one or over a bar, and those that leave the drawing.
const look = `<pre id="found"></pre><script>
const found = {drawings: 0, texts: 0, wrong: []};
for (const svg of document.querySelectorAll('svg')) {
	const frame = svg.getBoundingClientRect(), seen = [];
	for (const p of svg.querySelectorAll('path')) // bars and dots
		if (p.style.fill != 'none' && p.style.fill != 'rgb(255, 255, 255)' && p.style.fill != '') seen.push([p.getBoundingClientRect(), 'a bar']);
	if (frame.width > 200 && frame.height > 100) found.drawings++;
	for (const t of svg.querySelectorAll('text')) {
		const r = t.getBoundingClientRect(), text = t.textContent;
		found.texts++;
		if (r.left < frame.left - 1 || r.right > frame.right + 1 || r.top < frame.top - 1 || r.bottom > frame.bottom + 1) found.wrong.push('outside: ' + text);
		for (const [o, other] of seen)
			if (Math.min(r.right, o.right) - Math.max(r.left, o.left) > 1 && Math.min(r.bottom, o.bottom) - Math.max(r.top, o.top) > 4) found.wrong.push(text + ' over ' + other);
		seen.push([r, text]);
	}
}
document.getElementById('found').textContent = JSON.stringify(found);
</script>`

// TestRender has a browser draw the page, and finds no text over another one or over bars.
func TestRender(t *testing.T) {
	chromium := browser()
	if chromium == "" {
		t.Skip("no Chromium: apt-get install chromium-headless-shell brings one")
	}
	page := pageOfAll(t)
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, bytes.Replace(page, []byte("</body>"), []byte(look+"</body>"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(), "--window-size=1500,3000", "--dump-dom", "file://"+file)
	c.WaitDelay = 5 * time.Second
	var says strings.Builder
	c.Stderr = &says
	dom, err := c.Output()
	m := regexp.MustCompile(`<pre id="found">([^<]+)</pre>`).FindSubmatch(dom)
	if err != nil || m == nil {
		t.Fatalf("%s: %v, %d bytes\n%s", chromium, err, len(dom), says.String())
	}
	var found struct {
		Drawings, Texts int
		Wrong           []string
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(string(m[1]))), &found); err != nil {
		t.Fatal(err)
	}
	if want := bytes.Count(page, []byte("<svg ")); found.Drawings != want || found.Texts < 10*want {
		t.Errorf("%d drawings with %d texts are shown, of %d", found.Drawings, found.Texts, want)
	}
	for i, w := range found.Wrong {
		if i == 20 {
			t.Fatalf("and %d more", len(found.Wrong)-i)
		}
		t.Error(w)
	}
}
