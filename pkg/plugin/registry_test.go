package plugin

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/plugin/download"
)

// testRegistry is a registry on loopback: npm publishes into it.
type testRegistry struct {
	*httptest.Server
	mu       sync.Mutex
	packages map[string]map[string]any // packuments
	tarballs map[string][]byte         // by path
	asked    []string                  // method, path and Authorization of each request
	token    string                    // that it wants, "" = none
	fail     int                       // answers of 500 before it works
}

func newRegistry(t testing.TB) *testRegistry {
	r := &testRegistry{packages: map[string]map[string]any{}, tarballs: map[string][]byte{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *testRegistry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, q.Method+" "+q.URL.Path+" "+q.Header.Get("Authorization"))
	name := strings.TrimPrefix(q.URL.Path, "/")
	switch {
	case r.fail > 0:
		r.fail--
		w.WriteHeader(500)
	case r.token != "" && q.Header.Get("Authorization") != "Bearer "+r.token:
		w.WriteHeader(401)
	case q.Method == http.MethodPut:
		var doc map[string]any
		json.NewDecoder(q.Body).Decode(&doc)
		r.publish(doc)
		w.WriteHeader(201)
		w.Write([]byte("{}"))
	case r.tarballs[q.URL.Path] != nil:
		w.Write(r.tarballs[q.URL.Path])
	case r.packages[name] != nil:
		json.NewEncoder(w).Encode(r.packages[name])
	default:
		w.WriteHeader(404)
	}
}

// publish takes what npm publish sends.
func (r *testRegistry) publish(doc map[string]any) {
	name := doc["name"].(string)
	for file, a := range doc["_attachments"].(map[string]any) {
		content, _ := base64.StdEncoding.DecodeString(a.(map[string]any)["data"].(string))
		r.tarballs["/"+name+"/-/"+file] = content
	}
	old := r.packages[name]
	if old == nil {
		delete(doc, "_attachments")
		r.packages[name] = doc
		return
	}
	for v, x := range doc["versions"].(map[string]any) {
		old["versions"].(map[string]any)[v] = x
	}
	for tag, v := range doc["dist-tags"].(map[string]any) {
		old["dist-tags"].(map[string]any)[tag] = v
	}
}

// add publishes an archive without npm.
func (r *testRegistry) add(t testing.TB, name, version, tag string, files map[string]string) {
	t.Helper()
	content, err := os.ReadFile(pluginArchive(t, packaged(name, version, files)))
	if err != nil {
		t.Fatal(err)
	}
	r.addBytes(name, version, tag, content)
}

func (r *testRegistry) addBytes(name, version, tag string, content []byte) {
	sum := sha512.Sum512(content)
	file := filepath.Base(name) + "-" + version + ".tgz"
	r.mu.Lock()
	defer r.mu.Unlock()
	r.publish(map[string]any{
		"name": name, "dist-tags": map[string]any{tag: version},
		"versions": map[string]any{version: map[string]any{"dist": map[string]any{
			"tarball": r.URL + "/" + name + "/-/" + file, "integrity": "sha1-x sha512-" + base64.StdEncoding.EncodeToString(sum[:])}}},
		"_attachments": map[string]any{file: map[string]any{"data": base64.StdEncoding.EncodeToString(content)}},
	})
}

// packaged gives the files of a plugin with a package.json.
func packaged(name, version string, files map[string]string) map[string]string {
	files["package.json"] = `{"name":"` + name + `","version":"` + version + `"}`
	return files
}

// use points npm's configuration at the registry, by the user's .npmrc.
func (h *Host) npmrc(t testing.TB, lines ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.Dir, ".npmrc"), []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Environ = append(h.Environ, "npm_config_globalconfig="+filepath.Join(h.Dir, "none"))
}

// Case 47: exact version, range, tag and scope, published by the real npm.
func TestPackageFromARegistry(t *testing.T) {
	r := newRegistry(t)
	h := newHost(t)
	if _, err := exec.LookPath("npm"); err != nil {
		missing(t, "npm is not installed")
	}
	dir := dirOf(t, packaged("@s/p", "1.2.3", pluginFiles("scoped", "1.2.3")))
	cmd := exec.Command("npm", "publish", "--registry", r.URL, "--"+strings.TrimPrefix(r.URL, "http:")+"/:_authToken=x", "--access", "public")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+h.Dir, "npm_config_update_notifier=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm publish: %v %s", err, out)
	}
	for _, v := range []string{"1.0.0", "1.2.3", "1.9.0", "2.0.0", "3.0.0-rc.1"} {
		tag := map[string]string{"1.9.0": "latest", "3.0.0-rc.1": "next"}[v]
		if tag == "" {
			tag = "old"
		}
		r.add(t, "p", v, tag, pluginFiles("plain", v))
	}
	h.npmrc(t, "registry="+r.URL+"/")
	for source, want := range map[string]string{
		"npm:p": "1.9.0", "p@1.2.3": "1.2.3", "p@^1": "1.9.0", "p@^1.0.0 <1.5": "1.2.3", "p@next": "3.0.0-rc.1", "p@>=2": "2.0.0", "@s/p": "1.2.3",
	} {
		got := h.mustAdd(t, AddOptions{NoStart: true, Inactive: true, Replace: true}, source).Added[0]
		e := h.entry(t, got.ID)
		if got.Version != want || e.Origin != KindNPM || !strings.HasPrefix(e.Resolved, r.URL) || e.Source != "npm:"+strings.TrimPrefix(source, "npm:") || e.Platforms["any"].Integrity != e.Integrity {
			t.Errorf("%s: %+v %+v", source, got, e)
		}
	}
}

func missing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
		t.Fatal(reason)
	}
	t.Skip("SKIPPED: " + reason)
}

// Case 48: what a registry can answer.
func TestRegistryAnswers(t *testing.T) {
	r := newRegistry(t)
	h := newHost(t)
	h.npmrc(t, "registry="+r.URL)
	r.add(t, "p", "1.0.0", "latest", pluginFiles("acme", "1.0.0"))
	h.refuseAdd(t, fault.PluginNotFound, AddOptions{NoStart: true}, "nosuch")
	err := h.refuseAdd(t, fault.PluginNotFound, AddOptions{NoStart: true}, "p@9.9.9")
	if !strings.Contains(err.Error(), "the newest are 1.0.0") {
		t.Errorf("%v", err)
	}
	r.token = "sesame"
	if e, ok := h.refuseAdd(t, fault.PluginFetchFailed, AddOptions{NoStart: true}, "p").(*fault.Error); !ok || !strings.Contains(e.Hint, "credentials") {
		t.Errorf("%v", e)
	}
	r.token, r.fail, r.asked = "", 2, nil
	h.mustAdd(t, AddOptions{NoStart: true}, "p")
	if len(r.asked) != 4 {
		t.Errorf("two failures, a packument and an archive are %q", r.asked)
	}
	r.fail, r.asked = 9, nil
	h.refuseAdd(t, fault.PluginFetchFailed, AddOptions{NoStart: true}, "p")
	if len(r.asked) != 3 {
		t.Errorf("at most three tries: %q", r.asked)
	}
	host := strings.TrimPrefix(r.URL, "http://")
	r.Close()
	err = h.refuseAdd(t, fault.PluginFetchFailed, AddOptions{NoStart: true}, "p")
	if !strings.Contains(err.Error(), host) {
		t.Errorf("%v does not name the host", err)
	}
}

// Cases 49 and 50: a credential goes where it is written for and nowhere else,
// and a scope with a registry of its own never asks another.
func TestScopeAndCredentials(t *testing.T) {
	private, public, elsewhere := newRegistry(t), newRegistry(t), newRegistry(t)
	h := newHost(t)
	h.Environ = append(h.Environ, "TOKEN=sesame")
	h.npmrc(t, "registry="+public.URL, "@s:registry="+private.URL+"/npm/", "//"+strings.TrimPrefix(private.URL, "http://")+"/npm/:_authToken=${TOKEN}")
	private.token = "sesame"
	private.add(t, "npm/@s/p", "1.0.0", "latest", map[string]string{})
	files, _ := os.ReadFile(pluginArchive(t, packaged("@s/p", "1.0.0", pluginFiles("acme", "1.0.0"))))
	elsewhere.addBytes("@s/p", "1.0.0", "latest", files)
	private.packages["npm/@s/p"] = elsewhere.packages["@s/p"]
	h.mustAdd(t, AddOptions{NoStart: true}, "@s/p")
	if strings.Join(private.asked, "") != "GET /npm/@s/p Bearer sesame" || strings.Join(elsewhere.asked, "") != "GET /@s/p/-/p-1.0.0.tgz " || len(public.asked) != 0 {
		t.Errorf("private %q elsewhere %q public %q", private.asked, elsewhere.asked, public.asked)
	}
	h.refuseAdd(t, fault.PluginNotFound, AddOptions{NoStart: true}, "@s/missing")
	if len(public.asked) != 0 {
		t.Errorf("the public registry was asked: %q", public.asked)
	}
	redirecting := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/@s/p/-/p-1.0.0.tgz", http.StatusFound))
	defer redirecting.Close()
	elsewhere.asked = nil
	h.npmrc(t, "//"+strings.TrimPrefix(redirecting.URL, "http://")+"/:_authToken=sesame")
	config, client, err := h.npmConfig()
	if err != nil {
		t.Fatal(err)
	}
	err = client.Get(context.Background(), download.Request{URL: redirecting.URL + "/x.tgz", Credential: config.Authorization, Max: 1 << 20}, &strings.Builder{})
	if err != nil || strings.Join(elsewhere.asked, "") != "GET /@s/p/-/p-1.0.0.tgz " {
		t.Errorf("%v %q", err, elsewhere.asked)
	}
}

// Case 51: without a sha512 digest an archive cannot be checked. And bytes that
// are not those of the digest are refused.
func TestPackageDigest(t *testing.T) {
	r := newRegistry(t)
	h := newHost(t)
	h.npmrc(t, "registry="+r.URL)
	r.add(t, "p", "1.0.0", "latest", pluginFiles("acme", "1.0.0"))
	dist := r.packages["p"]["versions"].(map[string]any)["1.0.0"].(map[string]any)["dist"].(map[string]any)
	whole := dist["integrity"]
	dist["integrity"] = "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="
	h.refuseAdd(t, fault.PluginIntegrity, AddOptions{NoStart: true}, "p")
	dist["integrity"] = "sha512-" + strings.Repeat("A", 86) + "=="
	err := h.refuseAdd(t, fault.PluginIntegrity, AddOptions{NoStart: true}, "p")
	if !strings.Contains(err.Error(), "the registry says") {
		t.Errorf("%v", err)
	}
	dist["integrity"], dist["tarball"] = whole, "http://registry.example/p.tgz"
	h.refuseAdd(t, fault.PluginSourceInvalid, AddOptions{NoStart: true}, "p")
}

// Case 52: a bare word is a package, also where a directory has its name.
func TestBareWordIsNoPath(t *testing.T) {
	r := newRegistry(t)
	h := newHost(t)
	h.npmrc(t, "registry="+r.URL)
	r.add(t, "p", "2.0.0", "latest", pluginFiles("acme", "2.0.0"))
	os.Rename(dirOf(t, pluginFiles("acme", "1.0.0")), filepath.Join(h.Dir, "p"))
	if got := h.mustAdd(t, AddOptions{NoStart: true}, "p").Added[0]; got.Version != "2.0.0" {
		t.Errorf("%+v", got)
	}
	if got := h.mustAdd(t, AddOptions{NoStart: true, Replace: true}, "./p").Added[0]; got.Version != "1.0.0" {
		t.Errorf("%+v", got)
	}
}

// Case 59: offline, the cache and nothing else.
func TestOffline(t *testing.T) {
	r := newRegistry(t)
	h := newHost(t)
	h.npmrc(t, "registry="+r.URL)
	r.add(t, "p", "1.0.0", "latest", pluginFiles("acme", "1.0.0"))
	digest := *h.mustAdd(t, AddOptions{NoStart: true}, "p").Added[0].Integrity
	h.Remove(context.Background(), "default", []string{"acme"}, false, false, false)
	r.Close()
	h.Offline = true
	if got := h.mustAdd(t, AddOptions{NoStart: true}, "p@^1").Added[0]; got.Version != "1.0.0" || !strings.HasPrefix(*got.Resolved, r.URL) {
		t.Errorf("%+v", got)
	}
	h.refuseAdd(t, fault.PluginFetchFailed, AddOptions{NoStart: true}, "p@2")
	h.refuseAdd(t, fault.PluginFetchFailed, AddOptions{NoStart: true}, "other")
	os.RemoveAll(h.Places.Cache)
	err := h.refuseAdd(t, fault.PluginFetchFailed, AddOptions{NoStart: true}, "p")
	if !strings.Contains(err.Error(), digest) {
		t.Errorf("%v does not name the digest", err)
	}
}

// Case 65: one name and version with other bytes, also from another profile.
func TestRepublishedVersion(t *testing.T) {
	r := newRegistry(t)
	h := newHost(t)
	h.npmrc(t, "registry="+r.URL)
	r.add(t, "p", "1.0.0", "latest", pluginFiles("acme", "1.0.0"))
	h.mustAdd(t, AddOptions{NoStart: true}, "p")
	changed := pluginFiles("acme", "1.0.0")
	changed["extra"] = "x"
	r.add(t, "p", "1.0.0", "latest", changed)
	os.MkdirAll(filepath.Join(h.Places.Config, "profiles"), 0o755)
	os.WriteFile(filepath.Join(h.Places.Config, "profiles", "other.yaml"), []byte("version: 1\n"), 0o644)
	for _, name := range []string{"default", "other"} {
		_, err := h.Add(context.Background(), name, AddOptions{NoStart: true, Sources: []string{"p"}}, composer(h))
		wantCode(t, err, fault.PluginIntegrity)
	}
	if e := h.entry(t, "acme"); h.verifyTree(e.Tree) != nil {
		t.Error("the old version is not whole any more")
	}
}

// Once against the registry that npm's configuration names: a real package that
// is no plugin is refused clearly.
func TestRealPackageThatIsNoPlugin(t *testing.T) {
	if os.Getenv("AFIELD_TEST_NETWORK") == "" {
		t.Skip("SKIPPED: set AFIELD_TEST_NETWORK to use the registry that npm is configured with")
	}
	h := newHost(t)
	h.Environ = append(os.Environ(), "AFIELD_CONFIG_DIR="+h.Places.Config)
	err := h.refuseAdd(t, fault.PluginManifestInvalid, AddOptions{NoStart: true}, "is-number@7.0.0")
	if !strings.Contains(err.Error(), "this package is not a plugin of afield") {
		t.Errorf("%v", err)
	}
}

// The limits of a download do not wait for real: the client's are set.
func shortClient() *download.Client {
	return &download.Client{FirstByte: 300 * time.Millisecond, Idle: 300 * time.Millisecond, Pause: time.Millisecond}
}
