package dashboard

import (
	"fmt"
	"strings"
	"testing"
)

const rowNames = `[...document.querySelectorAll(".row .name:first-child")].filter((e) => !e.closest(".net-cell")).map((e) => e.firstChild.textContent)`

// Rows appear and change while a second process reads; they expand, sort, and
// are found; the page says no error and asks nobody else.
func TestPageFollowsTheSession(t *testing.T) {
	s := newScene(t)
	b := startBrowser(t)
	b.open(s.url(), 1200, 800, "light")
	b.until(`!document.getElementById("empty").hidden`)
	s.fill()
	b.until(`document.querySelectorAll(".row").length === 5`)
	b.until(`document.getElementById("net").textContent !== "0"`)

	// main.go was read, deduped, changed and read again.
	b.until(`[...document.querySelectorAll(".row")].some((e) => e.querySelector(".mark")?.textContent === "changed" && e.innerText.includes("main.go"))`)
	b.shoot("light")

	// Expand by mouse: one line for each segment, with its level.
	b.eval(`[...document.querySelectorAll(".top")].find((e) => e.innerText.includes("introduction.md")).click()`)
	b.until(`document.querySelectorAll(".segments li").length === 2`)
	text := b.eval(`document.querySelector(".segments").innerText`)
	if !strings.Contains(text, "L1-100") || !strings.Contains(text, "L200-259") {
		t.Errorf("segments: %s", text)
	}
	b.shoot("light-expanded")

	// Freshness colours: what the page paints is the colour of the level.
	for level, want := range map[string]string{"fresh": "rgb(34, 197, 94)", "expired": "rgb(220, 38, 38)"} {
		got := b.eval(`getComputedStyle(document.querySelector(".legend .` + level + `")).backgroundColor`)
		if got != want {
			t.Errorf("%s is %s, want %s", level, got, want)
		}
	}
	if got := b.eval(`document.querySelector(".segments .meter i").className`); got != "ok" && got != "warn" && got != "expired" {
		t.Errorf("a segment of the beginning of a full conversation is %s", got)
	}

	// Sort and search.
	b.eval(`(() => { const s = document.getElementById("sort"); s.value = "path"; s.dispatchEvent(new Event("change")); })()`)
	b.until(rowNames + `.join() === "the_name_itself_is_long_too.txt,introduction.md,main.go,decide.go,read.go"`)
	b.eval(`(() => { const s = document.getElementById("search"); s.value = " PKG/mount "; s.dispatchEvent(new Event("input")); })()`)
	b.until(rowNames + `.join() === "decide.go,read.go"`)
	b.eval(`(() => { const s = document.getElementById("search"); s.value = "nothing like it"; s.dispatchEvent(new Event("input")); })()`)
	b.until(`document.getElementById("empty").textContent === "No path matches."`)
	b.clean(s.origin)
}

// The page is used by keyboard alone.
func TestPageByKeyboard(t *testing.T) {
	s := newScene(t)
	s.fill()
	b := startBrowser(t)
	b.open(s.url(), 1200, 800, "dark")
	b.until(`document.querySelectorAll(".row").length === 5`)
	b.key("/")
	b.until(`document.activeElement.id === "search"`)
	b.call("Input.insertText", map[string]any{"text": "mount"}, nil)
	b.until(`document.querySelectorAll(".row").length === 2`)
	b.key("ArrowDown")
	b.until(`document.activeElement.className === "top"`)
	b.key("ArrowDown")
	b.until(`document.activeElement.parentNode.getAttribute("aria-posinset") === "2"`)
	b.key("Enter")
	b.until(`document.activeElement.getAttribute("aria-expanded") === "true"`)
	b.shoot("dark-expanded")
	b.key("Home")
	b.until(`document.activeElement.parentNode.getAttribute("aria-posinset") === "1"`)
	b.key("/")
	b.key("Escape")
	b.until(`document.querySelectorAll(".row").length === 5`)
	b.clean(s.origin)
}

// Both themes, and a phone: nothing is wider than the screen.
func TestPageThemesAndPhone(t *testing.T) {
	s := newScene(t)
	s.fill()
	b := startBrowser(t)
	background := map[string]string{}
	for _, c := range []struct {
		name          string
		width, height int
		scheme        string
	}{{"desktop-light", 1200, 800, "light"}, {"desktop-dark", 1200, 800, "dark"}, {"phone-light", 320, 640, "light"}, {"phone-dark", 320, 640, "dark"}} {
		b.open(s.url(), c.width, c.height, c.scheme)
		b.until(`document.querySelectorAll(".row").length > 3`)
		if strings.HasPrefix(c.name, "phone") {
			b.eval(`document.querySelectorAll(".top")[1].click()`)
			b.until(`document.querySelectorAll(".segments li").length > 0`)
		}
		b.shoot(c.name)
		if got := b.eval(`document.documentElement.scrollWidth <= innerWidth`); got != "true" {
			t.Errorf("%s: the page is wider than the screen", c.name)
		}
		overlap := b.eval(`[...document.querySelectorAll(".top > *")].some((e) => e.getBoundingClientRect().right > e.parentNode.getBoundingClientRect().right + 0.5)`)
		if overlap != "false" {
			t.Errorf("%s: a cell leaves its row", c.name)
		}
		background[c.scheme] = b.eval(`getComputedStyle(document.body).backgroundColor`)
	}
	if background["light"] == background["dark"] {
		t.Errorf("both themes have the background %s", background["light"])
	}
	b.eval(`document.getElementById("theme").click()`)
	if got := b.eval(`getComputedStyle(document.body).backgroundColor`); got != background["light"] {
		t.Errorf("the button leaves the background %s", got)
	}
	b.clean(s.origin)
}

// 1,000 files: few elements, all of them reachable.
func TestPageWithAThousandFiles(t *testing.T) {
	s := newScene(t)
	var reads []string
	for i := range 1000 {
		name := fmt.Sprintf("d%02d/file%04d.txt", i%20, i)
		s.file(name, 3)
		reads = append(reads, name+" 1 2 1000")
	}
	s.read(reads...)
	b := startBrowser(t)
	b.open(s.url(), 1200, 800, "light")
	b.until(`document.getElementById("count").textContent === "1,000"`)
	b.until(`document.querySelectorAll(".row").length > 5`)
	if got := b.eval(`document.querySelectorAll(".row").length < 80`); got != "true" {
		t.Errorf("%s rows are elements", b.eval(`document.querySelectorAll(".row").length`))
	}
	b.eval(`(() => { const s = document.getElementById("sort"); s.value = "path"; s.dispatchEvent(new Event("change")); })()`)
	b.eval(`document.querySelector(".top").focus()`)
	b.key("End")
	b.until(`document.activeElement.parentNode.getAttribute("aria-posinset") === "1000"`)
	if got := b.eval(`document.activeElement.innerText.includes("file0999.txt")`); got != "true" {
		t.Errorf("the last row is %s", b.eval(`document.activeElement.innerText`))
	}
	b.shoot("thousand")
	s.file("d05/new.txt", 5)
	s.read("d05/new.txt 1 5 1000")
	b.until(`document.getElementById("count").textContent === "1,001"`)
	b.clean(s.origin)
}
