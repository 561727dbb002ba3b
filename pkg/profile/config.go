package profile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
)

// configFile holds the name of the user's default profile.
func (p Places) configFile() string { return filepath.Join(p.Config, "config.yaml") }

func configSchema() backend.Schema {
	return backend.Schema{
		{Key: "version", Kind: backend.KindInt, Check: isVersion},
		{Key: "profile", Kind: backend.KindText},
	}
}

// configuredName gives the default profile of config.yaml, else the built-in
// one.
func (c *Composition) configuredName(ps *problems) (name, why string) {
	if c.Places.Config == "" {
		return DefaultName, "default"
	}
	path := c.Places.configFile()
	content := c.readSource(LayerUser, path, ps)
	if content == nil {
		return DefaultName, "default"
	}
	doc := parse(content, Origin{Layer: LayerUser, Source: path}, nil, ps)
	if !checkConfig(doc, ps) {
		return DefaultName, "default"
	}
	if name := usable(doc.get("profile")); name != nil {
		return name.text, path
	}
	return DefaultName, "default"
}

func checkConfig(doc *value, ps *problems) bool {
	if doc == nil || doc.broken {
		return false
	}
	if doc.kind != kindMap {
		ps.invalid(doc.origin, "", "config.yaml must be a map and is %s", article(doc.kind))
		return false
	}
	checker{ps}.checkMap(configSchema(), doc, nil)
	if doc.get("version") == nil {
		ps.invalid(doc.origin, "version", "version is missing").hint("begin the file with version: 1")
	}
	return true
}

// Use makes name the user's default profile by changing that one line of
// config.yaml; comments and blank lines stay. The name must exist. It gives the
// path of the file.
func (p Places) Use(name string) (path string, err error) {
	if p.Config == "" {
		return "", noConfig("use")
	}
	path = p.configFile()
	content, info, err := readBounded(path, maxDocumentBytes, false)
	mode := fs.FileMode(0o644)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		content = []byte("version: 1\n")
	case err != nil:
		return "", fault.Wrap(err, fault.ProfileInvalid, "use", path, "cannot read %s: %s", path, reasonOf(err))
	default:
		mode = info.Mode().Perm()
	}
	changed, err := setConfigName(content, path, name)
	if err != nil {
		return "", err
	}
	if err := publish(physical(path), changed, mode, 0o755); err != nil {
		return "", fault.Wrap(err, fault.FSIOError, "use", path, "cannot write %s: %s", path, reasonOf(err))
	}
	return path, nil
}

// setConfigName gives the content with the value of the key profile replaced,
// or with a line for it at the end.
func setConfigName(content []byte, path, name string) ([]byte, error) {
	ps := &problems{}
	doc := parse(content, Origin{Layer: LayerUser, Source: path}, nil, ps)
	checkConfig(doc, ps)
	if err := asError(ps.sorted()); err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(string(content), "\n")
	line := keyLine(doc, "profile")
	if line == 0 {
		text := string(content)
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return []byte(text + "profile: " + name + "\n"), nil
	}
	v := doc.get("profile")
	old := lines[line-1]
	if v.origin.Line != line || !strings.HasPrefix(strings.TrimPrefix(old, "\uFEFF"), "profile") {
		return nil, fault.New(fault.ProfileInvalid, "use", path, "%s: the key profile does not stand on a line of its own", path).
			WithHint("write it as profile: %s", name)
	}
	lines[line-1] = replaceScalar(old, name)
	return []byte(strings.Join(lines, "")), nil
}

// replaceScalar gives the line "profile: OLD  # comment" with another value.
func replaceScalar(line, name string) string {
	body := strings.TrimRight(line, "\r\n")
	end := line[len(body):]
	comment := ""
	if i := strings.Index(body, " #"); i >= 0 {
		kept := strings.TrimRight(body[:i], " \t")
		comment = body[len(kept):]
	}
	return body[:strings.Index(body, ":")+1] + " " + name + comment + end
}
