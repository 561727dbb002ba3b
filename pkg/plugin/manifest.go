package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
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

func (r *reader) manifest(data any, root *os.Root) *Manifest {
	at := r.object(data, "manifest", "manifest", "id", "version", "title", "homepage", "requires", "providers", "patch", "notes")
	if r.err != nil {
		return nil
	}
	if at["manifest"] != int64(1) {
		r.fail("manifest", "must be 1")
	}
	m := &Manifest{ID: r.text(at["id"], "id"), Version: r.text(at["version"], "version")}
	m.Title, m.Homepage = r.text(at["title"], "title"), r.text(at["homepage"], "homepage")
	if !ValidID(m.ID) || isBuiltIn(m.ID) {
		r.fail("id", "must be 1 to 32 of a-z 0-9 - and no built-in provider")
	}
	if !isVersion(m.Version) {
		r.fail("version", "must be a version such as 1.4.0")
	}
	r.requires(at["requires"], m)
	for i, v := range r.list(at["providers"], "providers") {
		m.Providers = append(m.Providers, r.offer(v, fmt.Sprintf("providers.%d", i), root))
	}
	r.checkOffers(m)
	for key, v := range r.open(at["notes"], "notes") {
		if m.Notes == nil {
			m.Notes = map[string]string{}
		}
		m.Notes[key] = r.text(v, "notes."+key)
	}
	r.patch(at["patch"], m)
	return m
}

func (r *reader) requires(v any, m *Manifest) {
	if v == nil {
		return
	}
	requires := r.object(v, "requires", "afield", "protocol")
	var err error
	if m.Afield, err = ParseRange(r.text(requires["afield"], "requires.afield")); err != nil {
		r.fail("requires.afield", "%s", err)
	}
	r.integer(requires["protocol"], "requires.protocol", 1, 1)
}

func (r *reader) checkOffers(m *Manifest) {
	if len(m.Providers) == 0 {
		r.fail("providers", "must name at least one provider")
	}
	for i, p := range m.Providers {
		if slices.ContainsFunc(m.Providers[:i], func(o Offer) bool { return o.Name == p.Name }) {
			r.fail("providers", "%q is there twice", p.Name)
		}
	}
}

func (r *reader) offer(v any, at string, root *os.Root) Offer {
	m := r.object(v, at, "name", "services", "level", "configSchema", "env", "run", "startTimeoutMs")
	o := Offer{Name: r.text(m["name"], at+".name"), Level: r.text(m["level"], at+".level"), Run: map[string]Run{}}
	if !ValidID(o.Name) || isBuiltIn(o.Name) {
		r.fail(at+".name", "must be 1 to 32 of a-z 0-9 - and no built-in provider")
	}
	for _, s := range r.texts(m["services"], at+".services") {
		if s != "fs" && s != "exec" || slices.Contains(o.Services, backend.Service(s)) {
			r.fail(at+".services", "must hold fs, exec or both")
		}
		o.Services = append(o.Services, backend.Service(s))
	}
	if len(o.Services) == 0 {
		r.fail(at+".services", "must hold fs, exec or both")
	}
	if o.Level == "" {
		o.Level = "contract"
	}
	if o.Level != "contract" && o.Level != "driver" {
		r.fail(at+".level", "must be contract or driver")
	}
	o.Env = r.texts(m["env"], at+".env")
	for _, name := range o.Env {
		if isCredential(name) {
			r.fail(at+".env", "%q looks like a credential; secrets travel by the protocol", name)
		}
	}
	o.Start = time.Duration(r.integer(m["startTimeoutMs"], at+".startTimeoutMs", 1, 60000)) * time.Millisecond
	r.runs(m["run"], at+".run", root, &o)
	o.Config = r.schemaFile(m["configSchema"], at+".configSchema", root)
	return o
}

// isCredential reports whether a variable's name is that of a credential.
func isCredential(name string) bool {
	upper := strings.ToUpper(name)
	for _, word := range []string{"KEY", "PASSWORD", "SECRET", "TOKEN"} {
		if strings.Contains(upper, word) {
			return true
		}
	}
	return name == "" || strings.ContainsAny(name, "=\x00") || strings.HasPrefix(upper, "AFIELD_")
}

func (r *reader) runs(v any, at string, root *os.Root, o *Offer) {
	runs := r.open(v, at)
	for _, platform := range sortedKeys(runs) {
		where := at + "." + platform
		if !isPlatform(platform) {
			r.fail(where, "must be OS/ARCH, OS/any or any")
		}
		m := r.object(runs[platform], where, "argv", "needs", "package")
		run := Run{Argv: r.texts(m["argv"], where+".argv"), Package: r.text(m["package"], where+".package")}
		for i, n := range r.list(m["needs"], where+".needs") {
			run.Needs = append(run.Needs, r.need(n, fmt.Sprintf("%s.needs.%d", where, i)))
		}
		if len(run.Argv) == 0 {
			r.fail(where+".argv", "must name a program")
		} else if run.Package == "" {
			r.program(run, where+".argv.0", root)
		}
		o.Run[platform] = run
	}
	if len(runs) == 0 {
		r.fail(at, "must say how the provider is started")
	}
}

func isPlatform(s string) bool {
	system, arch, found := strings.Cut(s, "/")
	return s == "any" || found && system != "" && arch != "" && strings.Trim(system+arch, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

func (r *reader) need(v any, at string) Need {
	m := r.object(v, at, "program", "version")
	n := Need{Program: r.text(m["program"], at+".program")}
	if n.Program == "" || strings.ContainsAny(n.Program, "/\\\x00") {
		r.fail(at+".program", "must be the name of a program")
	}
	var err error
	if n.Version, err = ParseRange(r.text(m["version"], at+".version")); err != nil {
		r.fail(at+".version", "%s", err)
	}
	return n
}

// program holds that argv[0] is a program named in needs, or an executable file
// of the plugin (case 82).
func (r *reader) program(run Run, at string, root *os.Root) {
	name := run.Argv[0]
	if slices.ContainsFunc(run.Needs, func(n Need) bool { return n.Program == name }) {
		return
	}
	if info := r.inside(name, at, root); info != nil && info.Mode()&0o111 == 0 {
		r.fail(at, "%q has no execute bit", name)
	}
}

// inside gives what is known of a regular file of the plugin.
func (r *reader) inside(name, at string, root *os.Root) fs.FileInfo {
	if reason := checkPath(name); reason != "" {
		r.fail(at, "must be a path inside the plugin: %s", reason)
		return nil
	}
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		r.fail(at, "%q is not a file of the plugin", name)
		return nil
	}
	return info
}

// patch reads the rows of layer 1. They may touch the built-in row and their
// own only, so a row of another id names one of the plugin's providers or a
// built-in one.
func (r *reader) patch(v any, m *Manifest) {
	if v == nil {
		return
	}
	p := r.object(v, "patch", "rows")
	for i, item := range r.list(p["rows"], "patch.rows") {
		at := fmt.Sprintf("patch.rows.%d", i)
		row := r.object(item, at, "id", "name", "provides", "disabled", "config")
		id, name := r.text(row["id"], at+".id"), r.text(row["name"], at+".name")
		if !ValidID(id) {
			r.fail(at+".id", "must be 1 to 32 of a-z 0-9 -")
		}
		if name == "" && id != builtInRow {
			r.fail(at, "a row that is not %s needs the name of a provider", builtInRow)
		}
		own := slices.ContainsFunc(m.Providers, func(o Offer) bool { return o.Name == name || m.ID+"/"+o.Name == name })
		if name != "" && !own && !isBuiltIn(name) {
			r.fail(at+".name", "%q is no provider of this plugin and not built in", name)
		}
		if row != nil {
			m.Rows = append(m.Rows, row)
		}
	}
}

// builtInRow is the row of layer 0.
const builtInRow = "world"

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
