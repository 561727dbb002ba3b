package profile

import (
	"bytes"
	"strings"
	"testing"
)

// Whatever a file holds: composing ends, every problem has a place in it, what
// is refused stays out of every output, and a valid composition survives its
// own dump with the same digest.
func FuzzCompose(f *testing.F) {
	for _, seed := range []string{
		"version: 1\nbackend: ssh\nconfig: {host: h, password: \"${K}\"}\n",
		"version: 1\nrows:\n  - id: world\n    name: box\n    config:\n      create: {size: large, labels: {a: b}}\n",
		"version: 1\nsplitWorld: true\nrows: [{id: a, name: local, provides: [fs], config: {cwd: /a}}, {id: b, name: procs, config: {cwd: /b}}]\n",
		"version: 1\nkeep: off\nfence: {}\nenv: {set: {A: \"$${x}\"}}\nmount: {safeRatio: 1e-1}\n",
		"version: 1\ndescription: >\n  folded\n  text\n",
		"version: 1\nbackend: x/y\nconfig: {apiKey: lit, deep: {token: {file: f}}, n: [1, null, {a: b}]}\n",
		"? [a]\n: *b\n", "&a [*a]", "a: !!binary aGk=\n", "<<: {a: b}\n", "version: 0x1\n", "\xEF\xBB\xBFversion: 1\r\n",
		"version: 1\n---\n", "%YAML 1.1\n---\nversion: 1\n", "a: \"\\0\"\n", "{version: 1, rows: [{id: world, disabled: null, config: null}]}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ps := &problems{}
		at := Origin{Layer: LayerFile, Source: "/f.yaml"}
		c := &Composition{Name: DefaultName, layers: newComposer(testProviders(), ps)}
		c.layers.apply(parse([]byte(text), at, nil, ps))
		c.finish(ps)
		c.Problems = ps.sorted()
		for _, p := range c.Problems {
			if strings.ContainsAny(p.Message, "\n\x00") || p.Code == "" {
				t.Fatalf("%q", p.Line())
			}
		}
		var dump bytes.Buffer
		if err := c.Dump(&dump); err != nil {
			t.Fatal(err)
		}
		c.Explain("")
		if len(c.Problems) > 0 || strings.Contains(text, "command") {
			return
		}
		ps = &problems{}
		back := &Composition{Name: DefaultName, layers: newComposer(testProviders(), ps)}
		back.layers.apply(parse(dump.Bytes(), at, nil, ps))
		back.finish(ps)
		if len(ps.list) > 0 || back.Digest() != c.Digest() {
			t.Fatalf("%v\n%s", ps.list, dump.String())
		}
	})
}
