package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"crypto/x509"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/plugin/download"
)

// testGitHub is a release host with TLS on loopback.
type testGitHub struct {
	*httptest.Server
	releases map[string]map[string][]byte // assets by tag
	latest   string
	asked    []string
}

func newGitHub(t testing.TB, h *Host) *testGitHub {
	g := &testGitHub{releases: map[string]map[string][]byte{}}
	g.Server = httptest.NewTLSServer(g)
	t.Cleanup(g.Close)
	h.Roots = x509.NewCertPool()
	h.Roots.AddCert(g.Certificate())
	h.Environ = append(h.Environ, "GITHUB_API_URL="+g.URL+"/api")
	return g
}

func (g *testGitHub) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	g.asked = append(g.asked, q.URL.Path+" "+q.Header.Get("Authorization"))
	part := strings.Split(q.URL.Path, "/")
	tag := part[len(part)-1]
	if tag == "latest" {
		tag = g.latest
	}
	switch {
	case strings.HasPrefix(q.URL.Path, "/api/repos/o/r/releases/") && g.releases[tag] != nil:
		assets := []map[string]any{}
		for _, name := range sortedKeys(g.releases[tag]) {
			assets = append(assets, map[string]any{"name": name, "url": g.URL + "/asset/" + tag + "/" + name,
				"browser_download_url": g.URL + "/o/r/releases/download/" + tag + "/" + name})
		}
		json.NewEncoder(w).Encode(map[string]any{"tag_name": tag, "assets": assets})
	case len(part) > 2 && g.releases[part[len(part)-2]][tag] != nil:
		w.Write(g.releases[part[len(part)-2]][tag])
	default:
		w.WriteHeader(404)
	}
}

func archiveBytes(t testing.TB, files map[string]string) []byte {
	t.Helper()
	content, err := os.ReadFile(pluginArchive(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Cases 53 and 54: assets of a release.
func TestReleaseAssets(t *testing.T) {
	h := newHost(t)
	g := newGitHub(t, h)
	one, two := archiveBytes(t, pluginFiles("acme", "1.0.0")), archiveBytes(t, pluginFiles("acme", "2.0.0"))
	g.releases["v1.0.0"] = map[string][]byte{"r_linux_amd64.tgz": one, "r_linux_arm64.tgz": two, "special.tgz": two}
	g.releases["v2.0.0"] = map[string][]byte{"r-2.0.0-linux-amd64.tar.gz": two}
	g.latest = "v2.0.0"
	got := h.mustAdd(t, AddOptions{NoStart: true}, "github:o/r").Added[0]
	if e := h.entry(t, "acme"); got.Version != "2.0.0" || e.Tag != "v2.0.0" || e.Source != "github:o/r" || !strings.HasPrefix(e.Resolved, g.URL+"/o/r/releases/download/v2.0.0/") {
		t.Errorf("%+v %+v", got, e)
	}
	got = h.mustAdd(t, AddOptions{NoStart: true}, "github:o/r@v1.0.0").Added[0]
	if e := h.entry(t, "acme"); got.Version != "1.0.0" || !strings.HasSuffix(e.Platforms["linux/arm64"].Resolved, "r_linux_arm64.tgz") {
		t.Errorf("%+v %+v", got, e)
	}
	if got = h.mustAdd(t, AddOptions{NoStart: true}, "github:o/r@v1.0.0#special.tgz").Added[0]; got.Version != "2.0.0" {
		t.Errorf("%+v", got)
	}
	h.Platform = "darwin/arm64"
	if err := h.refuseAdd(t, fault.PluginPlatformUnsupported, AddOptions{NoStart: true}, "github:o/r"); !strings.Contains(err.Error(), "r-2.0.0-linux-amd64.tar.gz") {
		t.Errorf("%v", err)
	}
	h.Platform = "linux/amd64"
	h.refuseAdd(t, fault.PluginNotFound, AddOptions{NoStart: true}, "github:o/r@v9")
	h.refuseAdd(t, fault.PluginNotFound, AddOptions{NoStart: true}, "github:o/other")
	sum := sha256.Sum256(one)
	g.releases["v2.0.0"]["SHA256SUMS"] = []byte(hex.EncodeToString(sum[:]) + "  r-2.0.0-linux-amd64.tar.gz\n")
	if err := h.refuseAdd(t, fault.PluginIntegrity, AddOptions{NoStart: true}, "github:o/r"); !strings.Contains(err.Error(), "checksums") {
		t.Errorf("%v", err)
	}
	sum = sha256.Sum256(two)
	g.releases["v2.0.0"]["SHA256SUMS"] = []byte(hex.EncodeToString(sum[:]) + " *r-2.0.0-linux-amd64.tar.gz\n")
	h.Environ, g.asked = append(h.Environ, "GH_TOKEN=sesame"), nil
	h.mustAdd(t, AddOptions{NoStart: true}, "github:o/r")
	for _, q := range g.asked {
		if !strings.HasSuffix(q, " Bearer sesame") || !strings.HasPrefix(q, "/api/") && !strings.HasPrefix(q, "/asset/") {
			t.Errorf("with a token everything is asked from the API: %q", g.asked)
		}
	}
}

// Cases 56, 57 and 64: addresses.
func TestAddresses(t *testing.T) {
	h := newHost(t)
	content := archiveBytes(t, pluginFiles("acme", "1.0.0"))
	var plain *httptest.Server
	serve := func(w http.ResponseWriter, q *http.Request) {
		var n int
		switch {
		case q.URL.Path == "/down.tgz":
			http.Redirect(w, q, plain.URL+"/x.tgz", http.StatusFound)
		case strings.HasPrefix(q.URL.Path, "/hop"):
			fmt.Sscanf(q.URL.Path, "/hop%d.tgz", &n)
			next := fmt.Sprintf("/hop%d.tgz", n-1)
			if n == 1 {
				next = "/x.tgz"
			}
			http.Redirect(w, q, next, http.StatusTemporaryRedirect)
		default:
			w.Write(content)
		}
	}
	plain = httptest.NewServer(http.HandlerFunc(serve))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(serve))
	defer secure.Close()
	h.Roots = x509.NewCertPool()
	h.Roots.AddCert(secure.Certificate())
	digest := *h.mustAdd(t, AddOptions{NoStart: true}, plain.URL+"/x.tgz").Added[0].Integrity
	h.mustAdd(t, AddOptions{NoStart: true, Replace: true}, secure.URL+"/hop5.tgz")
	h.refuseAdd(t, fault.PluginFetchFailed, AddOptions{NoStart: true, Replace: true}, secure.URL+"/hop6.tgz")
	h.refuseAdd(t, fault.PluginFetchFailed, AddOptions{NoStart: true, Replace: true}, secure.URL+"/down.tgz")
	far := "http://" + farAddress(t, content) + "/x.tgz"
	h.refuseAdd(t, fault.PluginSourceInvalid, AddOptions{NoStart: true, Replace: true}, far)
	h.mustAdd(t, AddOptions{NoStart: true, Replace: true, Integrity: digest}, far)
	h.mustAdd(t, AddOptions{NoStart: true, Replace: true}, plain.URL+"/x.tgz")
	changed := pluginFiles("acme", "1.0.0")
	changed["extra"] = "x"
	content = archiveBytes(t, changed)
	h.refuseAdd(t, fault.PluginIntegrity, AddOptions{NoStart: true, Replace: true}, plain.URL+"/x.tgz")
	if e := h.entry(t, "acme"); !e.Active || h.verifyTree(e.Tree) != nil {
		t.Error("the old version is not runnable any more")
	}
}

// farAddress serves content at an address of this machine that is not loopback.
func farAddress(t *testing.T, content []byte) string {
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		ip, ok := a.(*net.IPNet)
		if !ok || ip.IP.IsLoopback() || ip.IP.To4() == nil {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(ip.IP.String(), "0"))
		if err != nil {
			continue
		}
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(content) })}}
		s.Start()
		t.Cleanup(s.Close)
		return l.Addr().String()
	}
	missing(t, "this machine has no address but loopback")
	return ""
}

// Case 58: bodies that do not arrive whole.
func TestBrokenDownloads(t *testing.T) {
	held := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/short.tgz":
			w.Header().Set("Content-Length", "1000")
			w.Write([]byte("short"))
		case "/cut.tgz":
			w.Write([]byte("some"))
			w.(http.Flusher).Flush()
			c, _, _ := w.(http.Hijacker).Hijack()
			c.Close()
		case "/stuck.tgz":
			w.Write([]byte("some"))
			w.(http.Flusher).Flush()
			<-held
		case "/silent.tgz":
			<-held
		case "/large.tgz":
			w.Write(make([]byte, 2000))
		}
	}))
	defer s.Close()
	defer close(held)
	for path, want := range map[string]fault.Code{
		"/short.tgz": fault.PluginFetchFailed, "/cut.tgz": fault.PluginFetchFailed, "/stuck.tgz": fault.PluginFetchFailed,
		"/silent.tgz": fault.PluginFetchFailed, "/large.tgz": fault.PluginTooLarge,
	} {
		err := shortClient().Get(context.Background(), download.Request{URL: s.URL + path, Max: 1000}, io.Discard)
		wantCode(t, err, want)
	}
	whole := shortClient()
	whole.Idle, whole.Whole = time.Minute, 300*time.Millisecond
	err := whole.Get(context.Background(), download.Request{URL: s.URL + "/stuck.tgz", Max: 1000}, io.Discard)
	wantCode(t, err, fault.PluginFetchFailed)
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(100*time.Millisecond, func() { cancel(fault.ErrInterrupted) })
	wantCode(t, whole.Get(ctx, download.Request{URL: s.URL + "/stuck.tgz", Max: 1000}, io.Discard), fault.FSAborted)
	h := newHost(t)
	h.refuseAdd(t, fault.PluginFetchFailed, AddOptions{NoStart: true}, s.URL+"/short.tgz")
}

// sumsOf gives the checksum asset of others.
func sumsOf(assets map[string][]byte) []byte {
	var b strings.Builder
	for _, name := range sortedKeys(assets) {
		sum := sha256.Sum256(assets[name])
		fmt.Fprintf(&b, "%x  %s\n", sum, name)
	}
	return []byte(b.String())
}
