package dashboard

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// watchdog bounds every wait; a test that reaches it fails.
const watchdog = time.Minute

// browser is a headless Chromium with one page, driven over its debugging
// protocol.
type browser struct {
	t       *testing.T
	ws      *websocket.Conn
	session string

	mu      sync.Mutex
	last    int
	waiting map[int]chan json.RawMessage
	urls    []string // requested
	trouble []string // errors of the console and exceptions
}

// startBrowser opens a page in the Chromium of this test run, or skips the test
// where there is none and none is required.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
			t.Fatal("chromium is not installed: apt-get install chromium")
		}
		t.Skip("SKIPPED: chromium is not installed")
	}
	address, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, waiting: map[int]chan json.RawMessage{}}
	b.connect(address)
	return b
}

// endChromium ends the Chromium of this test run.
var endChromium = func() {}

// chromium starts it and gives the address of its debugging protocol.
var chromium = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "afield-chromium-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--hide-scrollbars", "--remote-debugging-port=0", "--user-data-dir="+dir, "about:blank")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	endChromium = func() {
		cmd.Process.Kill()
		cmd.Wait()
		os.RemoveAll(dir)
	}
	return addressOf(stderr)
})

// addressOf reads the address of the debugging protocol from stderr.
func addressOf(stderr io.Reader) (string, error) {
	var text strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := stderr.Read(buf)
		text.Write(buf[:n])
		if _, after, ok := strings.Cut(text.String(), "DevTools listening on "); ok {
			if address, _, whole := strings.Cut(after, "\n"); whole {
				go io.Copy(io.Discard, stderr)
				return address, nil
			}
		}
		if err != nil {
			return "", fmt.Errorf("chromium ended: %s", text.String())
		}
	}
}

func (b *browser) connect(address string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	ws.SetReadLimit(64 << 20)
	b.ws = ws
	go b.listen()
	var target struct{ TargetID string }
	var apart struct{ BrowserContextID string }
	b.call("Target.createBrowserContext", nil, &apart)
	b.call("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": apart.BrowserContextID}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.t.Cleanup(func() {
		b.session = ""
		b.call("Target.disposeBrowserContext", map[string]any{"browserContextId": apart.BrowserContextID}, nil)
		ws.CloseNow()
	})
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
}

// listen takes answers and events.
func (b *browser) listen() {
	for {
		_, data, err := b.ws.Read(context.Background())
		if err != nil {
			return
		}
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  json.RawMessage
		}
		if json.Unmarshal(data, &m) != nil {
			continue
		}
		b.mu.Lock()
		if ch := b.waiting[m.ID]; m.ID != 0 && ch != nil {
			if m.Error != nil {
				m.Result = json.RawMessage(`{"protocolError":` + string(m.Error) + `}`)
			}
			ch <- m.Result
			delete(b.waiting, m.ID)
		}
		b.note(m.Method, m.Params)
		b.mu.Unlock()
	}
}

// note keeps what the test asserts about the page's behaviour.
func (b *browser) note(method string, params json.RawMessage) {
	var p struct {
		Type    string
		Request struct{ URL string }
		Entry   struct{ Level, Text, URL string }
	}
	json.Unmarshal(params, &p)
	switch {
	case method == "Network.requestWillBeSent":
		b.urls = append(b.urls, p.Request.URL)
	case method == "Runtime.exceptionThrown",
		method == "Runtime.consoleAPICalled" && (p.Type == "error" || p.Type == "warning" || p.Type == "assert"),
		method == "Log.entryAdded" && p.Entry.Level == "error":
		b.trouble = append(b.trouble, string(params))
	}
}

// call sends a command and decodes its result.
func (b *browser) call(method string, params any, result any) {
	b.t.Helper()
	b.mu.Lock()
	b.last++
	id, ch := b.last, make(chan json.RawMessage, 1)
	b.waiting[id] = ch
	b.mu.Unlock()
	message := map[string]any{"id": id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	data, err := json.Marshal(message)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.ws.Write(context.Background(), websocket.MessageText, data); err != nil {
		b.t.Fatal(err)
	}
	select {
	case raw := <-ch:
		if strings.HasPrefix(string(raw), `{"protocolError"`) {
			b.t.Fatalf("%s: %s", method, raw)
		}
		if result != nil {
			if err := json.Unmarshal(raw, result); err != nil {
				b.t.Fatal(err)
			}
		}
	case <-time.After(watchdog):
		b.t.Fatalf("%s: no answer", method)
	}
}

// eval gives the value of an expression in the page.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got)
	if got.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, got.ExceptionDetails)
	}
	return strings.Trim(string(got.Result.Value), `"`)
}

// until waits in the page until an expression holds.
func (b *browser) until(expression string) {
	b.t.Helper()
	got := b.eval(`new Promise((done) => {
		const end = Date.now() + ` + fmt.Sprint(watchdog.Milliseconds()-5000) + `;
		const look = () => (` + expression + `) ? done("yes") : Date.now() > end ? done("no") : setTimeout(look, 20);
		look();
	})`)
	if got != "yes" {
		b.t.Fatalf("never held: %s\npage: %s", expression, b.eval("document.body.innerText.slice(0, 2000)"))
	}
}

// open loads a URL with a size and a colour scheme.
func (b *browser) open(url string, width, height int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.until(`document.readyState === "complete" && document.getElementById("live")?.textContent === "live"`)
}

// key presses a key.
func (b *browser) key(name string) {
	b.t.Helper()
	text := ""
	switch {
	case len(name) == 1:
		text = name
	case name == "Enter":
		text = "\r"
	}
	code := map[string]int{"ArrowDown": 40, "ArrowUp": 38, "Home": 36, "End": 35, "Enter": 13, "Escape": 27, "Tab": 9}[name]
	down := map[string]any{"type": "keyDown", "key": name, "windowsVirtualKeyCode": code}
	if text != "" {
		down["text"] = text
	}
	b.call("Input.dispatchKeyEvent", down, nil)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": name, "windowsVirtualKeyCode": code}, nil)
}

// clean holds that the page said no error and asked nobody but origin.
func (b *browser) clean(origin string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.trouble {
		b.t.Errorf("the page complains: %s", line)
	}
	for _, url := range b.urls {
		if !strings.HasPrefix(url, origin+"/") && !strings.HasPrefix(url, "data:") && url != "about:blank" {
			b.t.Errorf("the page asked %s", url)
		}
	}
}

// shoot stores a picture where AFIELD_TEST_PICTURES names a folder.
func (b *browser) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("AFIELD_TEST_PICTURES")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
