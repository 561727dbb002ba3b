package plugin

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
)

// Source is where a plugin comes from (plugins.md 23).
type Source struct {
	Kind Kind
	Text string // as it was written, paths made absolute
	// Name identifies it without a version: the path, the address, the package.
	Name string
}

// Kind is the kind of a source.
type Kind string

// The kinds of sources.
const (
	KindArchive   Kind = "file"      // an archive on this machine
	KindDirectory Kind = "directory" // a directory on this machine
)

// forms is the hint for what is none of them.
const forms = "a source is file:PATH, a path that ends in .tgz or .tar.gz, or a directory such as ./x or /x"

// ParseSource reads a source; relative paths count from dir. A bare word is
// never a path. It looks at no file.
func ParseSource(text, dir string) (Source, error) {
	switch {
	case text == "" || strings.ContainsRune(text, 0):
		return Source{}, sourceInvalid(text, "it is empty or holds a NUL")
	case strings.HasPrefix(text, "file://"):
		return parseFileURL(text)
	case strings.HasPrefix(text, "file:"):
		return local(strings.TrimPrefix(text, "file:"), dir), nil
	case isArchiveName(text) && !strings.Contains(text, "://") && !strings.HasPrefix(text, "npm:") && !strings.HasPrefix(text, "github:"):
		return local(text, dir), nil
	case text == "." || text == ".." || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") || strings.HasPrefix(text, "/"):
		return local(text, dir), nil
	}
	return Source{}, sourceInvalid(text, "it has none of the forms of a source")
}

func sourceInvalid(text, reason string) *fault.Error {
	return fault.New(fault.PluginSourceInvalid, "add", text, "the source %s is not accepted: %s", quotePath(text), reason).WithHint("%s", forms)
}

func isArchiveName(s string) bool {
	return strings.HasSuffix(s, ".tgz") || strings.HasSuffix(s, ".tar.gz")
}

func local(path, dir string) Source {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	path = filepath.Clean(path)
	return Source{Kind: KindArchive, Text: "file:" + path, Name: "file:" + path}
}

func (s Source) path() string { return strings.TrimPrefix(s.Name, "file:") }

// parseFileURL reads file:///PATH: the host is empty or localhost, and the path
// is percent-decoded.
func parseFileURL(text string) (Source, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host != "" && u.Host != "localhost" || !strings.HasPrefix(u.Path, "/") || u.RawQuery != "" || u.Fragment != "" {
		return Source{}, sourceInvalid(text, "a file URL has an empty host and an absolute path")
	}
	return local(u.Path, "/"), nil
}

// allowed holds a source against plugins.sources of the profile (case 60).
func (s Source) allowed(prefixes []string) error {
	if prefixes == nil {
		return nil
	}
	for _, p := range prefixes {
		if strings.HasPrefix(s.Text, p) {
			return nil
		}
	}
	return fault.New(fault.PluginDenied, "add", s.Text, "the profile does not allow plugins from %s", quotePath(s.Text)).
		WithHint("plugins.sources of the profile allows %s", strings.Join(prefixes, ", "))
}
