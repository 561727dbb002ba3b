package plugin

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
)

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
