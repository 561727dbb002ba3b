package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
)

const plainManifest = `manifest: 1
id: acme-box
version: 1.4.0
title: Worlds
requires: {afield: ">=1.2", protocol: 1}
providers:
  - name: acme-box
    services: [fs, exec]
    configSchema: schema.json
    env: [HTTPS_PROXY]
    run:
      any: {argv: [bin/serve]}
patch:
  rows:
    - {id: world, disabled: true}
    - {id: world-box, name: acme-box, config: {cwd: /w}}
notes: {network: "contacts the endpoint"}
`

const plainSchema = `{"type":"object","properties":{"cwd":{"type":"string","format":"abs-posix-path"},
 "apiKey":{"type":"string","x-secret":true,"default":"${ACME_API_KEY}"},"size":{"type":"integer","minimum":1,"maximum":8,"default":2}},"required":["cwd"]}`

// readFrom reads the manifest of a directory with these files; a name that ends
// in ! has its execute bit.
func readFrom(t testing.TB, files map[string]string) (*Manifest, error) {
	t.Helper()
	root, err := os.OpenRoot(dirOf(t, files))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return readManifest(root)
}

func dirOf(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, "!") {
			name, mode = strings.TrimSuffix(name, "!"), 0o755
		}
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func with(old, new string) map[string]string {
	return map[string]string{"plugin.yaml": strings.Replace(plainManifest, old, new, 1), "schema.json": plainSchema, "bin/serve!": "#!/bin/sh\n", "bin/plain": "x"}
}

// A manifest in plugin.yaml and the same in package.json say the same.
func TestManifestIsRead(t *testing.T) {
	m, err := readFrom(t, with("", ""))
	if err != nil {
		t.Fatal(err)
	}
	if m.ID != "acme-box" || m.Version != "1.4.0" || len(m.Services()) != 2 || !m.Afield.Holds("1.3.0") || m.Afield.Holds("1.1.0") {
		t.Errorf("%+v", m)
	}
	if run, ok := m.Providers[0].On("linux/amd64"); !ok || run.Argv[0] != "bin/serve" {
		t.Errorf("%+v", run)
	}
	if diff := cmp.Diff([]string{"cwd", "apiKey", "size"}, m.Providers[0].Config.Keys(), cmp.Transformer("set", set)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"world-box"}, m.rowIDs()); diff != "" {
		t.Error(diff)
	}
	if patch := string(m.as("other").Patch()); !strings.Contains(patch, `"name":"other/acme-box"`) {
		t.Error(patch)
	}
	same, err := readFrom(t, map[string]string{"package.json": `{"name":"@acme/x","scripts":{"postinstall":"touch /tmp/never"},"afield":
		{"manifest":1,"id":"acme-box","version":"1.4.0","providers":[{"name":"acme-box","services":["fs"],"run":{"linux/any":{"argv":["bin/serve"]}}}]}}`, "bin/serve!": "x"})
	if err != nil || same.ID != "acme-box" {
		t.Errorf("%+v %v", same, err)
	}
	if _, ok := same.Providers[0].On("darwin/arm64"); ok {
		t.Error("linux/any serves darwin")
	}
}

func set(keys []string) map[string]bool {
	m := map[string]bool{}
	for _, key := range keys {
		m[key] = true
	}
	return m
}

// Cases 61, 80, 82, 83, 85 and 86: what a manifest may not be.
func TestManifestIsRefused(t *testing.T) {
	schema := func(content string) map[string]string {
		files := with("", "")
		files["schema.json"] = content
		return files
	}
	deep := strings.Repeat(`{"type":"array","items":`, 18) + `{"type":"string"}` + strings.Repeat("}", 18)
	prop := func(s string) map[string]string { return schema(`{"type":"object","properties":{"a":` + s + `}}`) }
	for name, files := range map[string]map[string]string{
		"80 none":                      {"a": "x"},
		"80 both":                      {"plugin.yaml": plainManifest, "package.json": `{"afield":{}}`, "bin/serve!": "x", "schema.json": plainSchema},
		"80 too large":                 {"plugin.yaml": plainManifest + "#" + strings.Repeat("x", 1<<20), "bin/serve!": "x", "schema.json": plainSchema},
		"80 duplicate keys":            with("version: 1.4.0", "version: 1.4.0\nversion: 1.4.0"),
		"80 duplicate keys in JSON":    {"package.json": `{"afield":{"manifest":1,"manifest":1}}`},
		"80 id with dots":              with("id: acme-box", "id: ../../evil"),
		"80 id in upper case":          with("id: acme-box", "id: UPPER"),
		"80 id local":                  with("id: acme-box", "id: local"),
		"80 id empty":                  with("id: acme-box", `id: ""`),
		"80 version latest":            with("1.4.0", "latest"),
		"80 version 1.4":               with("1.4.0", `"1.4"`),
		"80 anchors":                   with("id: acme-box", "id: &x acme-box"),
		"82 run outside":               with("bin/serve", "../x"),
		"82 run absolute":              with("bin/serve", "/bin/sh"),
		"82 run missing":               with("bin/serve", "bin/none"),
		"82 run a directory":           with("bin/serve", "bin"),
		"82 run without execute bit":   with("bin/serve", "bin/plain"),
		"82 schema outside":            with("schema.json", "../x"),
		"82 schema missing":            with("schema.json", "none.json"),
		"83 hooks":                     with("id: acme-box", "id: acme-box\nhooks: {install: x}"),
		"85 remote reference":          prop(`{"$ref":"https://example.com/s.json"}`),
		"85 unknown reference":         prop(`{"$ref":"#/$defs/none"}`),
		"85 circle":                    schema(`{"$defs":{"x":{"type":"array","items":{"$ref":"#/$defs/x"}}},"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`),
		"85 not":                       prop(`{"not":{"type":"string"}}`),
		"85 no RE2":                    prop(`{"type":"string","pattern":"(a+)+\\1"}`),
		"85 huge RE2":                  prop(`{"type":"string","pattern":"((a{1000}){1000}){1000}"}`),
		"85 deep":                      prop(deep),
		"85 keyword of another type":   prop(`{"type":"string","minimum":1}`),
		"85 unknown format":            prop(`{"type":"string","format":"email"}`),
		"85 default that does not fit": prop(`{"type":"integer","minimum":3,"default":2}`),
		"85 no object":                 schema(`{"type":"string"}`),
		"85 secret literal":            prop(`{"type":"string","x-secret":true,"default":"sk-abc"}`),
		"86 provider local":            with("- name: acme-box", "- name: local"),
		"patch of another's row":       with("id: world-box, name: acme-box", "id: other"),
		"patch with env":               with("  rows:", "  env: {set: {A: b}}\n  rows:"),
		"credential in env":            with("HTTPS_PROXY", "ACME_TOKEN"),
		"protocol 2":                   with("protocol: 1", "protocol: 2"),
		"bad range":                    with(`">=1.2"`, `"newest"`),
		"61 dsh bundle":                {"package.json": `{"name":"dsh-file-mount","dsh":{"bundle":{"patch":"cordis.patch.yml"}}}`},
		"no plugin":                    {"package.json": `{"name":"left-pad","version":"1.0.0"}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readFrom(t, files)
			wantCode(t, err, fault.PluginManifestInvalid)
			if strings.HasPrefix(name, "61") && !strings.Contains(err.Error(), "dsh bundle") {
				t.Errorf("%v does not name a dsh bundle", err)
			}
		})
	}
}

// Each keyword of a schema has its effect, at n-1, n and n+1.
func TestSchemaRules(t *testing.T) {
	for _, c := range []struct {
		schema string
		good   []any
		bad    []any
	}{
		{`{"type":"integer","minimum":2,"maximum":4}`, []any{int64(2), int64(4)}, []any{int64(1), int64(5)}},
		{`{"type":"number","minimum":-0.5,"maximum":0}`, []any{-0.5, 0.0}, []any{-0.6, 0.1}},
		{`{"type":"string","minLength":2,"maxLength":3}`, []any{"éé", "abc"}, []any{"é", "abcd"}},
		{`{"type":"string","pattern":"^a+$"}`, []any{"aa"}, []any{"ab"}},
		{`{"type":"string","enum":["a","b"]}`, []any{"a"}, []any{"c"}},
		{`{"type":"integer","const":3}`, []any{int64(3)}, []any{int64(4)}},
		{`{"type":"array","minItems":1,"maxItems":2,"uniqueItems":true}`, []any{[]any{"a", "b"}}, []any{[]any{}, []any{"a", "b", "c"}, []any{"a", "a"}}},
		{`{"type":"string","format":"abs-posix-path"}`, []any{"/a"}, []any{"a"}},
		{`{"type":"string","format":"uri-https"}`, []any{"https://a"}, []any{"http://a", "https://"}},
		{`{"type":"string","format":"env-name"}`, []any{"A_1"}, []any{"1A", "A-B", ""}},
		{`{"type":"integer","format":"duration-ms"}`, []any{int64(0)}, []any{int64(-1)}},
	} {
		m, err := readFrom(t, func() map[string]string {
			files := with("", "")
			files["schema.json"] = `{"type":"object","properties":{"a":` + c.schema + `}}`
			return files
		}())
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		f, _ := m.Providers[0].Config.Field("a")
		for _, v := range c.good {
			if said := f.Check(v); said != "" {
				t.Errorf("%s: %v is refused: %s", c.schema, v, said)
			}
		}
		for _, v := range c.bad {
			if f.Check(v) == "" {
				t.Errorf("%s: %v is accepted", c.schema, v)
			}
		}
	}
}

// Objects are closed unless they say otherwise, and references are followed.
func TestSchemaObjects(t *testing.T) {
	files := with("", "")
	files["schema.json"] = `{"$defs":{"port":{"type":"integer","minimum":1}},"type":"object","properties":{
		"closed":{"type":"object","properties":{"port":{"$ref":"#/$defs/port"}},"required":["port"]},
		"open":{"type":"object","additionalProperties":{"type":"integer"}},"any":{"type":"object","additionalProperties":true}}}`
	m, err := readFrom(t, files)
	if err != nil {
		t.Fatal(err)
	}
	closed, _ := m.Providers[0].Config.Field("closed")
	port, ok := closed.Fields.Field("port")
	if !ok || port.Kind != backend.KindInt || !port.Required || port.Check(int64(0)) == "" {
		t.Errorf("%+v", closed)
	}
	open, _ := m.Providers[0].Config.Field("open")
	if open.Fields != nil || open.Item().Kind != backend.KindInt {
		t.Errorf("%+v", open)
	}
}

// Whatever the bytes are: no panic, and every refusal has its code.
func FuzzManifest(f *testing.F) {
	f.Add(plainManifest, `{"name":"x"}`, plainSchema)
	f.Add("manifest: 1\n", `{"afield":{"manifest":1}}`, `{}`)
	f.Fuzz(func(t *testing.T, yaml, pkg, schema string) {
		for _, files := range []map[string]string{
			{"plugin.yaml": yaml, "schema.json": schema, "bin/serve!": "x"},
			{"package.json": pkg, "schema.json": schema, "bin/serve!": "x"},
			{"plugin.yaml": plainManifest, "schema.json": schema, "bin/serve!": "x"},
		} {
			if _, err := readFrom(t, files); err != nil && fault.CodeOf(err) != fault.PluginManifestInvalid {
				t.Errorf("%v (%s)", err, fault.CodeOf(err))
			}
		}
	})
}
