package profile

import (
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// dshRow is one row of a composed dsh profile (plugins.md 3). Its config is what
// the last layer said of it: dsh replaces it as a whole.
type dshRow struct {
	id, name string
	config   *yaml.Node
	disabled *yaml.Node
}

// off reports whether the row is disabled. dsh takes any non-empty text as true;
// what would have to be evaluated does not count.
func (r *dshRow) off() bool {
	n := r.disabled
	return n != nil && !isJS(n) && n.ShortTag() != "!!null" && n.Value != "" && n.Value != "false" && n.Value != "0"
}

func isJS(n *yaml.Node) bool { return n != nil && n.ShortTag() == "!!js" }

// dshTree is the rows of a profile under composition.
type dshTree struct {
	rows   []*dshRow
	missed []string // patches that did not fit, as dsh reports them
}

func (t *dshTree) find(id string) *dshRow {
	for _, r := range t.rows {
		if id != "" && r.id == id {
			return r
		}
	}
	return nil
}

// apply applies a patch file. What it holds is read and never evaluated.
func (t *dshTree) apply(label string, content []byte) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(content, &doc); err != nil {
		return fmt.Errorf("%s: %w", label, err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.SequenceNode {
		return fmt.Errorf("%s: %w", label, errors.New("a patch must be a list at the top"))
	}
	for _, entry := range doc.Content[0].Content {
		if entry.Kind == yaml.AliasNode {
			entry = entry.Alias
		}
		t.entry(label, entry)
	}
	return nil
}

// entry applies one entry: rows to insert, or keys for a row.
func (t *dshTree) entry(label string, n *yaml.Node) {
	keys := dshKeys(n)
	id := dshText(keys["id"])
	if list := keys["insert"]; list != nil {
		if id != "" && t.find(id) == nil {
			t.missed = append(t.missed, fmt.Sprintf("%s: there is no group %q to insert into", label, id))
			return
		}
		t.insert(list)
		return
	}
	row := t.find(id)
	switch {
	case id == "":
		t.missed = append(t.missed, label+": an entry without id and insert")
	case row == nil:
		t.missed = append(t.missed, fmt.Sprintf("%s: entry %q not found", label, id))
	case keys["name"] != nil && dshText(keys["name"]) != row.name:
		t.missed = append(t.missed, fmt.Sprintf("%s: entry %q is %s and not %s", label, id, row.name, dshText(keys["name"])))
	default:
		if c := keys["config"]; c != nil {
			row.config = c
		}
		if d, ok := keys["disabled"]; ok {
			row.disabled = d
		}
	}
}

// insert adds rows, those inside of a group too.
func (t *dshTree) insert(list *yaml.Node) {
	if list.Kind != yaml.SequenceNode {
		return
	}
	for _, n := range list.Content {
		keys := dshKeys(n)
		row := &dshRow{id: dshText(keys["id"]), name: dshText(keys["name"]), config: keys["config"], disabled: keys["disabled"]}
		t.rows = append(t.rows, row)
		if row.config != nil && row.config.Kind == yaml.SequenceNode {
			t.insert(row.config)
		}
	}
}

// dshKeys gives the entries of a mapping by key.
func dshKeys(n *yaml.Node) map[string]*yaml.Node {
	out := map[string]*yaml.Node{}
	if n == nil || n.Kind != yaml.MappingNode {
		return out
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		value := n.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		out[n.Content[i].Value] = value
	}
	return out
}

func dshText(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return strings.TrimSpace(n.Value)
}
