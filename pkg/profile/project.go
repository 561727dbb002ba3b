package profile

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/afield-dev/afield/pkg/fault"
)

// ProjectFile is the name of a project's profile.
const ProjectFile = ".afield.yaml"

// FindProject gives the path of the project file that counts in dir, or "". It
// walks up and ends with the directory that holds .git, the home directory, the
// last one on the file system of dir, or the root (plugins.md 13).
func FindProject(dir, home string) string {
	dir = physical(dir)
	home = physical(home)
	device, ok := deviceOf(dir)
	for ok {
		path := filepath.Join(dir, ProjectFile)
		if _, err := os.Lstat(path); err == nil {
			return path
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || dir == home || dir == filepath.Dir(dir) {
			return ""
		}
		dir = filepath.Dir(dir)
		above, known := deviceOf(dir)
		ok = known && above == device
	}
	return ""
}

// physical resolves links where that is possible.
func physical(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

func deviceOf(dir string) (uint64, bool) {
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err != nil {
		return 0, false
	}
	return uint64(st.Dev), true
}

// readProject finds, reads and judges the project file. The content that was
// judged is the content that is used.
func (c *Composition) readProject(ps *problems, trustAll bool) *value {
	path := FindProject(c.dir, c.Places.Home)
	if path == "" {
		return nil
	}
	content := c.readSource(LayerProject, path, ps)
	if content == nil {
		return nil
	}
	trusted := trustAll || c.Places.Trusts(path, content)
	c.Sources[len(c.Sources)-1].Trusted = &trusted
	at := Origin{Layer: LayerProject, Source: path}
	if !trusted {
		ps.add(fault.ProfileUntrusted, at, "", "the project file is not trusted, or changed since it was").
			hint("look at it, then: afield profile trust %s; or pass --no-project", path)
		return nil
	}
	doc := parse(content, at, nil, ps)
	restrictProject(doc, ps)
	return doc
}

// restrictProject refuses what even a trusted project file may not say
// (plugins.md 18). Commands for secrets are refused where secrets are checked.
func restrictProject(doc *value, ps *problems) {
	if registry := doc.get("plugins").get("registry"); !registry.isNull() {
		ps.invalid(registry.origin, "plugins.registry", "a project file may not name a plugin registry")
	}
}

// restrictExternal refuses an external row that a project file made or changed.
func (c *composer) restrictExternal() {
	for _, r := range c.rows {
		if r.name.text != "external" {
			continue
		}
		for _, v := range append(r.config.leaves(), r.name) {
			for _, written := range v.history() {
				if written.origin.Layer == LayerProject {
					c.problems.invalid(written.origin, r.id, "a project file may not make or change the external row %s", r.id)
					return
				}
			}
		}
	}
}

// leaves gives the values below v that are no maps.
func (v *value) leaves() []*value {
	switch {
	case v == nil:
		return nil
	case v.kind != kindMap:
		return []*value{v}
	}
	var out []*value
	for _, e := range v.entries {
		out = append(out, e.value.leaves()...)
	}
	return out
}
