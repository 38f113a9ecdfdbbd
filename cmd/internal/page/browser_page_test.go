package page

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/runner-evidence/runner/cmd/internal/acts"
	"github.com/runner-evidence/runner/schemas"
	"github.com/runner-evidence/runner/schemas/testkit"
)

const status = `document.querySelector("#operations-table [role=status]").textContent`

// TestBrowser: a page full of hostile names in a real browser. None of them runs, nothing is fetched,
// each has a row; search, folds and pages work by the keyboard.
func TestBrowser(t *testing.T) {
	var page bytes.Buffer
	testkit.Must(t, hostile().Write(&page))
	b, _ := browse(t, page.Bytes())
	all := fmt.Sprint(len(names))
	b.Expect(status, "1 to "+all+" of "+all)
	b.Expect(`document.querySelectorAll("#operations-table tbody tr").length`, all)
	b.Expect(`document.title`, "/<script>document.title='ran'</script>")
	b.Expect(`document.querySelectorAll("script").length + " " + document.querySelectorAll("img, iframe, object, embed, link, base, form, body b").length`, "2 0")
	b.Expect(`[...document.querySelectorAll("*")].flatMap((e) => [...e.attributes]).filter((a) => /^on/.test(a.name)).length`, "0")
	for i := range 3 {
		b.Expect(fmt.Sprintf(`document.querySelectorAll("#operations-table tbody tr")[%d].querySelector(".name").textContent`, i), names[i])
	}

	// The keyboard: "/" goes to the search, Enter and Space fold.
	b.Key("/", "/", 191)
	b.Expect(`document.activeElement.id`, "operations-table-search")
	b.Ask(nil, "Input.insertText", map[string]any{"text": "GNP.exe"})
	b.Until(status + ` === "1 to 1 of 1 found, of ` + all + `"`)
	b.Expect(`document.querySelector("#operations-table td.name").textContent`, `/\u202egnp.exe`)
	b.Key("Tab", "", 9) // to the first choice
	b.Expect(`document.activeElement.tagName`, "SELECT")
	b.Value(`document.querySelector("#tree summary").focus()`)
	const open = `document.querySelector("#tree details").open`
	b.Expect(open, "false")
	b.Key("Enter", "\r", 13)
	b.Expect(open, "true")
	b.Key(" ", " ", 32)
	b.Expect(open, "false")
	b.Expect(`getComputedStyle(document.activeElement).outlineStyle`, "solid")

	// A long name is cut until it is asked for; a button shows the operations of one process.
	b.Value(`[...document.querySelectorAll("#operations-table button")].find((x) => x.textContent === "Clear").click()`)
	b.Expect(`(() => { const x = document.querySelector("#operations-table td.name button.all"); x.click(); return x.getAttribute("aria-expanded") + " " + x.parentElement.textContent.includes("x".repeat(3998)); })()`, "true true")
	b.Value(`document.querySelectorAll("#tree [data-process]")[1].click()`)
	b.Expect(status, "1 to 1 of 1 found, of "+all)

	// For a screen reader: one main part, headings, and every control has a name.
	b.Expect(`document.querySelectorAll("main").length + " " + document.querySelectorAll("h1").length`, "1 1")
	b.Expect(`[...document.querySelectorAll("section")].every((s) => document.getElementById(s.getAttribute("aria-labelledby")))`, "true")
	b.Expect(`[...document.querySelectorAll("input, select, button")].filter((e) => !(e.labels && e.labels.length) && !e.textContent.trim()).length`, "0")
	b.Expect(`new Set([...document.querySelectorAll("[id]")].map((e) => e.id)).size === document.querySelectorAll("[id]").length`, "true")
	b.Expect(contrasts, "")
	b.Ask(nil, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}})
	b.Expect(contrasts, "")

	// A narrow window needs no scrolling sideways.
	b.Ask(nil, "Emulation.setDeviceMetricsOverride", map[string]any{"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": false})
	b.Expect(`(document.documentElement.scrollWidth <= 400) + " " + [...document.querySelectorAll("body *")].filter((e) => !e.closest(".wide, .skip") && e.getBoundingClientRect().right > 400).map((e) => e.tagName + "." + e.className).slice(0, 8).join()`, "true ")
	quiet(t, b)
}

// contrasts are the colours whose text has a contrast below 4.5 on the page or on a panel.
const contrasts = `(() => {
	const style = getComputedStyle(document.documentElement);
	const light = (name) => {
		const hex = style.getPropertyValue(name).trim().slice(1);
		const [r, g, b] = [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const low = [];
	for (const back of ["--back", "--panel"]) for (const text of ["--text", "--soft", "--link", "--good", "--warn", "--bad"]) {
		const [x, y] = [light(back), light(text)].sort((a, b) => b - a);
		if (!((x + 0.05) / (y + 0.05) >= 4.5)) low.push(text + " on " + back);
	}
	return low.join();
})()`

// TestBrowserLarge: a page with 100,000 operations opens and is searched while a person waits.
func TestBrowserLarge(t *testing.T) {
	const many, groups, mostLoad, mostSearch = 100_000, 500, 15 * time.Second, 3 * time.Second
	d := NewData()
	p := &Page{Title: "large", Kind: "good", Data: d}
	for i := range many {
		path := fmt.Sprintf("/work/dir%d/sub%d/file-%d.txt", i%97, i%13, i)
		d.Add(&acts.Act{Seq: uint64(i), Group: acts.Wrote, Outcome: schemas.ActDone, Process: acts.Process{PID: uint32(1000 + i/200)}}, i/200, Words{"make", "write", path, "done"})
	}
	for i := range groups {
		p.Tree = append(p.Tree, Process{Index: i, PID: uint32(1000 + i), Count: "200 operations"})
	}
	var page bytes.Buffer
	testkit.Must(t, p.Write(&page))
	b, loaded := browse(t, page.Bytes())
	b.Expect(status, "1 to 100 of 100,000")
	begin := time.Now()
	b.Value(`document.getElementById("operations-table-search").focus()`)
	b.Ask(nil, "Input.insertText", map[string]any{"text": "file-99999 DIR"})
	b.Until(status + ` === "1 to 1 of 1 found, of 100,000"`)
	searched := time.Since(begin)
	begin = time.Now()
	b.Value(`document.getElementById("operations-table-search").select()`)
	b.Key("Delete", "", 46)
	b.Value(`[...document.querySelectorAll("#operations-table th button")].find((x) => x.textContent === "name").click()`)
	sorted := time.Since(begin)
	t.Logf("%d operations, %.1f MB: ready after %v, searched in %v, ordered by name in %v", many, float64(page.Len())/1e6, loaded.Round(time.Millisecond), searched.Round(time.Millisecond), sorted.Round(time.Millisecond))
	if loaded > mostLoad || searched > mostSearch || sorted > mostLoad {
		t.Errorf("expected at most %v, %v and %v", mostLoad, mostSearch, mostLoad)
	}
	quiet(t, b)
}
