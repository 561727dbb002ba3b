package profile

import (
	"github.com/afield-dev/afield/pkg/backend"
)

// composer lays the documents of all layers over each other.
type composer struct {
	providers backend.Registry
	problems  *problems
	schema    backend.Schema // topSchema, made once
	root      *value         // the top-level blocks, merged
	rows      []*row
	chosen    map[backend.Service]*row
	// short: some layer used the short form, so that config.KEY names a value.
	short bool
	// cwd are working directories that a variable or a flag gave for the world.
	cwd []*value
}

func newComposer(providers backend.Registry, ps *problems) *composer {
	name := newValue("local", Origin{})
	return &composer{
		providers: providers, problems: ps, schema: topSchema(),
		root: &value{kind: kindMap},
		rows: []*row{{id: defaultRow, name: name}},
	}
}

// apply lays a document over what is there.
func (c *composer) apply(doc *value) {
	if doc == nil || doc.broken {
		return
	}
	if doc.kind != kindMap {
		c.problems.invalid(doc.origin, "", "a profile must be a map and is %s", article(doc.kind))
		return
	}
	checker{c.problems}.checkMap(c.schema, doc, nil)
	c.checkForm(doc)
	m := merger{problems: c.problems}
	blocks := &value{kind: kindMap, origin: doc.origin}
	for _, e := range doc.entries {
		switch e.key {
		case "version", "profile", "backend", "config", "rows":
			continue
		}
		if !e.value.broken {
			checkTexts(e.value, []string{e.key}, c.problems)
			blocks.entries = append(blocks.entries, e)
		}
	}
	c.root = m.merge(c.root, blocks, nil)
	if name := usable(doc.get("backend")); name != nil {
		c.short = true
		c.applyBackend(name, usable(doc.get("config")))
	}
	if rows := usable(doc.get("rows")); rows != nil && doc.get("backend") == nil {
		c.applyRows(rows)
	}
}

// checkForm holds what one document may say: a version in files, one of the
// two forms, and a base profile only in a project.
func (c *composer) checkForm(doc *value) {
	name, rows, config := doc.get("backend"), doc.get("rows"), doc.get("config")
	if doc.origin.isFile() && doc.get("version") == nil {
		c.problems.invalid(doc.origin, "version", "version is missing").hint("begin the file with version: 1")
	}
	if name != nil && rows != nil {
		c.problems.invalid(rows.origin, "", "backend (line %d) and rows (line %d) do not go together in one document",
			keyLine(doc, "backend"), keyLine(doc, "rows")).hint("give the provider a row with the id world")
	}
	if config != nil && name == nil {
		c.problems.invalid(config.origin, "config", "config goes with backend").hint("write backend: NAME, or a row with the id world and its config")
	}
	if base := doc.get("profile"); base != nil && doc.origin.Layer != LayerProject {
		c.problems.invalid(base.origin, "profile", "profile is a key of project files only")
	}
}

func keyLine(doc *value, key string) int {
	for _, e := range doc.entries {
		if e.key == key {
			return e.at.Line
		}
	}
	return 0
}
