package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/afield-dev/afield/pkg/fault"
)

// Imported is what a profile of dsh means here (plugins.md 20).
type Imported struct {
	Content []byte // a profile
	// Left are rows and values that are not taken over, Notes what to know of
	// those that are.
	Left  []string
	Notes []string
}

// ImportDsh reads the profile name below a dsh home and gives what it means. Nothing
// of it is evaluated or run, and literal secrets are not copied.
func ImportDsh(home, name string) (*Imported, error) {
	dir := filepath.Join(home, "profiles", name)
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, `/\`) {
		return nil, fault.New(fault.ProfileInvalid, "import", name, "%q is no name of a dsh profile", name)
	}
	bundles, err := dshBundles(dir)
	if err != nil {
		return nil, err
	}
	i := &dshImport{tree: &dshTree{}}
	for _, bundle := range bundles {
		if err := i.bundle(home, dir, bundle); err != nil {
			return nil, err
		}
	}
	for _, path := range []string{filepath.Join(dir, "cordis.patch.yml"), filepath.Join(home, "cordis.patch.yml")} {
		if err := i.patch(path, filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), true); err != nil {
			return nil, err
		}
	}
	return i.result(), nil
}

// dshBundles reads dsh.profile.bundles of the profile's package.json.
func dshBundles(dir string) ([]string, error) {
	path := filepath.Join(dir, "package.json")
	content, err := readDsh(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(err, fault.ProfileNotFound, "import", dir, "there is no dsh profile at %s", dir).
			WithHint("name the directory that holds profiles/ with --home")
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.ProfileInvalid, "import", path, "cannot read %s: %s", path, reasonOf(err))
	}
	var pkg struct {
		Dsh struct {
			Profile struct {
				Bundles []string `json:"bundles"`
			} `json:"profile"`
		} `json:"dsh"`
	}
	if err := json.Unmarshal(content, &pkg); err != nil {
		return nil, fault.Wrap(err, fault.ProfileInvalid, "import", path, "%s: %s", path, err)
	}
	return pkg.Dsh.Profile.Bundles, nil
}

// readDsh reads a small file.
func readDsh(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return nil, errors.New("not a regular file of at most 1 MiB")
	}
	return os.ReadFile(path)
}

// dshImport is an import under way.
type dshImport struct {
	tree  *dshTree
	left  []string
	notes []string
	out   strings.Builder
}

// bundle applies the patch of a bundle: of the installation first, then of the
// profile (plugins.md 2).
func (i *dshImport) bundle(home, dir, name string) error {
	if name == "" || !filepath.IsLocal(name) {
		i.left = append(i.left, fmt.Sprintf("bundle %q: not the name of a package", name))
		return nil
	}
	for _, modules := range []string{filepath.Join(home, "profiles", "node_modules"), filepath.Join(dir, "node_modules")} {
		root := filepath.Join(modules, name)
		content, err := readDsh(filepath.Join(root, "package.json"))
		if err != nil {
			continue
		}
		var pkg struct {
			Dsh struct {
				Bundle struct {
					Patch json.RawMessage `json:"patch"`
				} `json:"bundle"`
			} `json:"dsh"`
		}
		if err := json.Unmarshal(content, &pkg); err != nil {
			return fault.Wrap(err, fault.ProfileInvalid, "import", root, "package.json of the bundle %s: %s", name, err)
		}
		for _, file := range oneOrMore(pkg.Dsh.Bundle.Patch) {
			if !filepath.IsLocal(file) {
				i.left = append(i.left, fmt.Sprintf("bundle %s: its patch %q lies outside of it", name, file))
				continue
			}
			if err := i.patch(filepath.Join(root, file), name, false); err != nil {
				return err
			}
		}
		return nil
	}
	i.notes = append(i.notes, "the bundle "+name+" is not installed; its rows are not known")
	if name == "@deepseek-ai/dsh-base" {
		i.tree.rows = append(i.tree.rows, &dshRow{id: "subprocess", name: "@deepseek-ai/dsh-subprocess-local"}, &dshRow{id: "fs-sandbox", name: "@deepseek-ai/dsh-fs-sandbox"})
	}
	return nil
}

// oneOrMore reads a text or a list of texts.
func oneOrMore(raw json.RawMessage) []string {
	var one string
	var more []string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	json.Unmarshal(raw, &more)
	return more
}

func (i *dshImport) patch(path, label string, optional bool) error {
	content, err := readDsh(path)
	if errors.Is(err, fs.ErrNotExist) && optional {
		return nil
	}
	if err == nil {
		err = i.tree.apply(label, content)
	}
	if err != nil {
		return fault.Wrap(err, fault.ProfileInvalid, "import", path, "cannot read the patch %s: %s", path, reasonOf(err))
	}
	return nil
}

// row gives the enabled row of a plugin, nil = there is none.
func (i *dshImport) row(names ...string) *dshRow {
	for _, r := range i.tree.rows {
		if !r.off() && slices.Contains(names, r.name) {
			return r
		}
	}
	return nil
}

// The plugins of dsh that mean something here.
const (
	dshFence      = "@deepseek-ai/dsh-sandbox-policy"
	dshLocalFS    = "@deepseek-ai/dsh-fs-local"
	dshSandboxFS  = "@deepseek-ai/dsh-fs-sandbox"
	dshLocalExec  = "@deepseek-ai/dsh-subprocess-local"
	dshE2B        = "@deepseek-ai/dsh-e2b"
	dshE2BFS      = "@deepseek-ai/dsh-fs-e2b"
	dshE2BExec    = "@deepseek-ai/dsh-subprocess-e2b"
	dshBox        = "@upstash/dsh-box"
	dshBoxExec    = "@upstash/dsh-box/subprocess"
	dshMount      = "dsh-file-mount"
	e2bKeys       = "cwd timeoutMs apiKey"
	boxKeys       = "cwd runtime requestTimeoutMs baseUrl apiKey"
	fenceKeys     = "mode workspaceRoot"
	dshBoxDefault = "/workspace/home"
)

// result writes the profile.
func (i *dshImport) result() *Imported {
	i.out.WriteString("# Taken over from a profile of dsh.\nversion: 1\n")
	switch {
	case i.row(dshE2B) != nil:
		i.out.WriteString("backend: e2b\nconfig:\n  create: true\n")
		i.keys("  ", i.row(dshE2B), e2bKeys, "${E2B_API_KEY}")
	case i.row(dshBox) != nil:
		i.box()
	default:
		i.out.WriteString("backend: local\n")
	}
	if r := i.row(dshFence); r != nil && i.row(dshSandboxFS) != nil {
		i.block("fence", r, fenceKeys)
	}
	if r := i.row(dshMount); r != nil {
		var known []string
		for _, f := range mountSchema() {
			known = append(known, f.Key)
		}
		i.block("mount", r, strings.Join(known, " "))
	}
	i.rest()
	return &Imported{Content: []byte(i.out.String()), Left: append(i.left, i.tree.missed...), Notes: i.notes}
}

// box writes a split world: dsh's box plugin replaces the processes only.
func (i *dshImport) box() {
	i.out.WriteString("splitWorld: true\nrows:\n  - id: files\n    name: local\n    provides: [fs]\n    config: {cwd: .}\n" +
		"  - id: processes\n    name: box\n    provides: [exec]\n    config:\n      create: true\n")
	i.keys("      ", i.row(dshBox), boxKeys, "${UPSTASH_BOX_API_KEY}")
	if dshKeys(i.row(dshBox).config)["cwd"] == nil {
		fmt.Fprintf(&i.out, "      cwd: %s\n", dshBoxDefault)
	}
	i.notes = append(i.notes, "under dsh the files stay on this machine and only processes run in the box: a split world; for one world write backend: box")
}

// block writes a block of the profile from a row.
func (i *dshImport) block(name string, r *dshRow, known string) {
	before := i.out.Len()
	fmt.Fprintf(&i.out, "%s:\n", name)
	start := i.out.Len()
	i.keys("  ", r, known, "")
	if i.out.Len() == start {
		text := i.out.String()[:before]
		i.out.Reset()
		i.out.WriteString(text)
	}
}

// keys writes the known keys of a row's config. A secret is a reference: that of
// the row, or the backend's usual one.
func (i *dshImport) keys(indent string, r *dshRow, known, secret string) {
	config := dshKeys(r.config)
	var names []string
	for key := range config {
		names = append(names, key)
	}
	slices.Sort(names)
	for _, key := range names {
		value, where := config[key], "row "+r.id+": config."+key
		switch {
		case key == "apiKey" && secret != "":
			fmt.Fprintf(&i.out, "%sapiKey: %s\n", indent, i.reference(value, secret, where))
		case !slices.Contains(strings.Fields(known), key):
			i.left = append(i.left, where)
		case hasJS(value):
			i.left = append(i.left, where+" is evaluated by dsh")
		default:
			text, err := dshValue(value)
			if err != nil {
				i.left = append(i.left, where)
				continue
			}
			fmt.Fprintf(&i.out, "%s%s: %s\n", indent, key, text)
		}
	}
}

// reference gives a secret as a reference; a literal is not copied.
func (i *dshImport) reference(n *yaml.Node, usual, where string) string {
	name, ok := strings.CutPrefix(dshText(n), "process.env.")
	if isJS(n) && ok && isVariable(name) {
		return "${" + name + "}"
	}
	if isJS(n) {
		i.left = append(i.left, where+" is evaluated by dsh")
	} else {
		i.notes = append(i.notes, where+" holds a literal key, which is not copied; set "+strings.Trim(usual, "${}"))
	}
	return usual
}

func isVariable(name string) bool {
	return name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// hasJS reports whether something in a value would have to be evaluated.
func hasJS(n *yaml.Node) bool {
	return isJS(n) || slices.ContainsFunc(n.Content, hasJS)
}

// dshValue gives a value in YAML's flow form, which is JSON; a $ that would mean
// something here is doubled.
func dshValue(n *yaml.Node) (string, error) {
	var v any
	if err := n.Decode(&v); err != nil {
		return "", err
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		v = n.Value
	}
	text, err := json.Marshal(v)
	return strings.ReplaceAll(string(text), "${", "$${"), err
}

// rest names the enabled rows that mean nothing here.
func (i *dshImport) rest() {
	known := []string{dshFence, dshLocalFS, dshSandboxFS, dshLocalExec, dshE2B, dshE2BFS, dshE2BExec, dshBox, dshBoxExec, dshMount}
	for _, r := range i.tree.rows {
		if !r.off() && !slices.Contains(known, r.name) {
			i.left = append(i.left, fmt.Sprintf("row %s (%s)", orWord(r.id), orWord(r.name)))
		}
		if isJS(r.disabled) {
			i.left = append(i.left, fmt.Sprintf("row %s: disabled is evaluated by dsh", orWord(r.id)))
		}
	}
}

func orWord(s string) string {
	if s == "" {
		return "without a name"
	}
	return s
}
