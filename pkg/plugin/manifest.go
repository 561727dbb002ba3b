package plugin

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/profile"
)

// Manifest is what a plugin says of itself (plugins.md 27).
type Manifest struct {
	ID        string
	Version   string
	Title     string
	Homepage  string
	Afield    Range // versions of afield that it works with
	Providers []Offer
	// Rows is its patch: rows of a profile, names of its own providers written
	// in full.
	Rows  []map[string]any
	Notes map[string]string
}

// Offer is one provider of a plugin.
type Offer struct {
	Name     string
	Services []backend.Service
	Level    string // "contract" or "driver"
	Config   backend.Schema
	Env      []string
	Start    time.Duration
	Run      map[string]Run // by OS/ARCH, OS/any or any
}

// Run is how a provider is started on a platform.
type Run struct {
	Argv    []string
	Needs   []Need
	Package string // a second archive
}

// Need is a program of the host.
type Need struct {
	Program string
	Version Range
}

// On gives how the provider is started on os/arch.
func (o Offer) On(platform string) (Run, bool) {
	system, _, _ := strings.Cut(platform, "/")
	for _, key := range []string{platform, system + "/any", "any"} {
		if run, ok := o.Run[key]; ok {
			return run, true
		}
	}
	return Run{}, false
}

// Platforms lists what the plugin runs on.
func (m Manifest) Platforms() []string {
	var out []string
	for _, p := range m.Providers {
		out = append(out, sortedKeys(p.Run)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Services gives what its providers offer together.
func (m Manifest) Services() []backend.Service {
	var out []backend.Service
	for _, p := range m.Providers {
		out = append(out, p.Services...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Patch gives layer 1 of the plugin as a document of the profile format.
func (m Manifest) Patch() []byte {
	rows := m.Rows
	if rows == nil {
		rows = []map[string]any{}
	}
	content, _ := json.Marshal(map[string]any{"rows": rows})
	return content
}

// readManifest reads the manifest at the root of a plugin (U-8).
func readManifest(root *os.Root) (*Manifest, error) {
	yaml, err := readOptional(root, "plugin.yaml")
	if err != nil {
		return nil, err
	}
	pkg, err := readOptional(root, "package.json")
	if err != nil {
		return nil, err
	}
	data, source, err := manifestData(yaml, pkg)
	if err != nil {
		return nil, err
	}
	r := &reader{}
	m := r.manifest(data, root)
	if r.err != nil {
		r.err.Message = source + ": " + r.err.Message
		return nil, r.err
	}
	return m, nil
}

func invalidManifest(format string, args ...any) *fault.Error {
	return fault.New(fault.PluginManifestInvalid, "manifest", "", format, args...)
}

// readOptional reads a small file, nil when there is none.
func readOptional(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, ioFault(err, "read", name)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err != nil {
		return nil, ioFault(err, "read", name)
	}
	if len(content) > maxDocument {
		return nil, invalidManifest("%s is larger than 1 MiB", name)
	}
	if content == nil {
		content = []byte{}
	}
	return content, nil
}

// manifestData gives the manifest of the two places that there is.
func manifestData(yaml, pkg []byte) (data any, source string, err error) {
	var packed map[string]any
	if pkg != nil {
		v, err := readJSON(pkg)
		if err != nil {
			return nil, "", invalidManifest("package.json: %s", err)
		}
		packed, _ = v.(map[string]any)
	}
	own, has := packed["afield"]
	switch {
	case yaml != nil && has:
		return nil, "", invalidManifest("plugin.yaml and the key afield of package.json are both a manifest; keep one")
	case yaml != nil:
		v, err := profile.Document(yaml, "plugin.yaml")
		if err != nil {
			return nil, "", invalidManifest("%s", err)
		}
		return v, "plugin.yaml", nil
	case has:
		return own, "package.json: afield", nil
	case isBundle(packed):
		return nil, "", invalidManifest("this is a dsh bundle and not a plugin of afield: package.json has dsh.bundle and no manifest").
			WithHint("afield does not run dsh bundles; a profile of dsh can be read with afield profile import-dsh")
	case pkg == nil:
		return nil, "", invalidManifest("there is no manifest: neither plugin.yaml nor package.json at the root")
	default:
		return nil, "", invalidManifest("package.json has no key afield: this package is not a plugin of afield")
	}
}

func isBundle(pkg map[string]any) bool {
	dsh, _ := pkg["dsh"].(map[string]any)
	_, bundle := dsh["bundle"]
	return bundle
}

// rowIDs gives the ids of the rows that the plugin brings.
func (m Manifest) rowIDs() []string {
	var ids []string
	for _, row := range m.Rows {
		if name, _ := row["name"].(string); name != "" {
			ids = append(ids, row["id"].(string))
		}
	}
	return ids
}

// replaced gives the ids of the rows that the plugin switches off.
func (m Manifest) replaced() []string {
	var ids []string
	for _, row := range m.Rows {
		if row["disabled"] == true {
			ids = append(ids, row["id"].(string))
		}
	}
	return ids
}

// as gives the manifest under another id, with the names of its providers in
// its patch written in full.
func (m Manifest) as(id string) Manifest {
	var rows []map[string]any
	for _, row := range m.Rows {
		full := map[string]any{}
		for key, v := range row {
			full[key] = v
		}
		if name, _ := row["name"].(string); name != "" && !isBuiltIn(name) {
			full["name"] = id + "/" + path.Base(name)
		}
		rows = append(rows, full)
	}
	m.ID, m.Rows = id, rows
	return m
}

func isBuiltIn(name string) bool {
	switch name {
	case "local", "ssh", "e2b", "box", "external", "docker":
		return true
	}
	return false
}

// isVersion reports whether s is a full semantic version.
func isVersion(s string) bool {
	v := "v" + s
	return semver.IsValid(v) && semver.Canonical(v)+semver.Build(v) == v
}
