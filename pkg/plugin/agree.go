package plugin

import (
	"os"
	"slices"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// agree asks for agreement where a new version wants more than the installed
// one: services, variables, programs (plugins.md 27, case 98).
func (t *transaction) agree(old Entry, c *candidate) error {
	adds := t.host.grown(old, c.manifest)
	if len(adds) == 0 || t.options.Yes {
		return nil
	}
	if t.options.Confirm != nil && t.options.Confirm(c.entry.ID, adds) {
		return nil
	}
	return fault.New(fault.PluginConfirm, "add", c.entry.ID, "%s %s adds %s to what %s had", c.entry.ID, c.entry.Version, strings.Join(adds, ", "), old.Version).
		WithHint("--yes agrees to it")
}

// grown lists what a manifest wants beyond that of an installed plugin. Where
// the old one cannot be read, its services are known from the lock.
func (h *Host) grown(old Entry, m Manifest) []string {
	had := wants{services: old.Manifest.Services}
	if before, err := h.manifestOf(old); err == nil {
		had = before.wants()
	}
	now := m.wants()
	var adds []string
	for _, kind := range []struct {
		word     string
		old, now []string
	}{{"the service", had.services, now.services}, {"the variable", had.env, now.env}, {"the program", had.programs, now.programs}} {
		for _, x := range kind.now {
			if !slices.Contains(kind.old, x) {
				adds = append(adds, kind.word+" "+x)
			}
		}
	}
	return adds
}

// wants is what a plugin asks of the machine.
type wants struct{ services, env, programs []string }

func (m Manifest) wants() wants {
	w := wants{services: words(m.Services())}
	for _, o := range m.Providers {
		w.env = append(w.env, o.Env...)
		for _, platform := range sortedKeys(o.Run) {
			for _, n := range o.Run[platform].Needs {
				w.programs = append(w.programs, n.Program)
			}
		}
	}
	for _, list := range []*[]string{&w.env, &w.programs} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return w
}

// checkPackage holds that an archive from a registry is the package that was
// asked for: an edited source in a lock names another (case 71).
func (c *candidate) checkPackage(root *os.Root) error {
	if c.source.Kind != KindNPM {
		return nil
	}
	content, err := readOptional(root, "package.json")
	if err != nil {
		return err
	}
	v, _ := readJSON(content)
	pkg, _ := v.(map[string]any)
	if name, _ := pkg["name"].(string); "npm:"+name != c.source.Name {
		return fault.New(fault.PluginIntegrity, "add", c.source.Text, "the source is %s and the archive holds the package %q", c.source.Name, name)
	}
	return nil
}
