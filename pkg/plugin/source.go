package plugin

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/plugin/npm"
)

// Source is where a plugin comes from (plugins.md 23).
type Source struct {
	Kind Kind
	Text string // as it was written, paths made absolute
	// Name identifies it without a version: the path, the address, the package.
	Name string
	// Spec is what follows the @ of a package or a repository: a version, a
	// dist-tag, a range, or the tag of a release. "" is the newest.
	Spec string
	// Asset is the one file of a release that was asked for, "" = the one for
	// this platform.
	Asset string
}

// Kind is the kind of a source.
type Kind string

// The kinds of sources.
const (
	KindArchive   Kind = "file"      // an archive on this machine
	KindDirectory Kind = "directory" // a directory on this machine
	KindNPM       Kind = "npm"       // a package of a registry
	KindGitHub    Kind = "github"    // an asset of a release
	KindAddress   Kind = "https"     // an archive at an address
)

// forms is the hint for what is none of them.
const forms = "a source is [npm:]NAME[@SPEC], github:OWNER/REPO[@TAG][#ASSET], https://HOST/x.tgz, file:PATH, " +
	"a path that ends in .tgz or .tar.gz, or a directory such as ./x or /x"

// ParseSource reads a source; relative paths count from dir. A bare word is
// never a path (case 52). It looks at no file.
func ParseSource(text, dir string) (Source, error) {
	switch {
	case text == "" || strings.ContainsRune(text, 0):
		return Source{}, sourceInvalid(text, "it is empty or holds a NUL")
	case strings.HasPrefix(text, "npm:"):
		return parsePackage(text, strings.TrimPrefix(text, "npm:"))
	case strings.HasPrefix(text, "github:"):
		return parseRelease(text)
	case strings.HasPrefix(text, "https://"), strings.HasPrefix(text, "http://"):
		return parseAddress(text)
	case strings.HasPrefix(text, "file://"):
		return parseFileURL(text)
	case strings.HasPrefix(text, "file:"):
		return local(strings.TrimPrefix(text, "file:"), dir), nil
	case isArchiveName(text) && !strings.Contains(text, "://"):
		return local(text, dir), nil
	case text == "." || text == ".." || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") || strings.HasPrefix(text, "/"):
		return local(text, dir), nil
	}
	if _, _, ok := npm.ParseSpec(text); ok {
		return parsePackage(text, text)
	}
	return Source{}, sourceInvalid(text, "it has none of the forms of a source")
}

func parsePackage(text, pkg string) (Source, error) {
	name, spec, ok := npm.ParseSpec(pkg)
	if !ok {
		return Source{}, sourceInvalid(text, "it is not the name of a package with a version, tag or range")
	}
	return Source{Kind: KindNPM, Text: "npm:" + pkg, Name: "npm:" + name, Spec: spec}, nil
}

// parseRelease reads github:OWNER/REPO[@TAG][#ASSET].
func parseRelease(text string) (Source, error) {
	rest, asset, hasAsset := strings.Cut(strings.TrimPrefix(text, "github:"), "#")
	repo, tag, hasTag := strings.Cut(rest, "@")
	owner, name, _ := strings.Cut(repo, "/")
	if !isRepoWord(owner) || !isRepoWord(name) || hasTag && !isTag(tag) || hasAsset && (!isTag(asset) || strings.Contains(asset, "/")) {
		return Source{}, sourceInvalid(text, "it is not OWNER/REPO with a @TAG and an #ASSET, if any")
	}
	return Source{Kind: KindGitHub, Text: text, Name: "github:" + repo, Spec: tag, Asset: asset}, nil
}

func isRepoWord(s string) bool {
	letters := "abcdefghijklmnopqrstuvwxyz0123456789-_."
	return s != "" && len(s) <= 100 && s != "." && s != ".." && strings.Trim(strings.ToLower(s), letters) == ""
}

// isTag holds a tag or the name of an asset to what can stand in an address.
func isTag(s string) bool {
	for _, r := range s {
		if r <= ' ' || r > '~' || strings.ContainsRune("?#%\\", r) {
			return false
		}
	}
	return s != "" && len(s) <= 256 && !strings.Contains("/"+s+"/", "/../") && !strings.Contains("/"+s+"/", "/./")
}

// parseAddress reads the address of an archive. http is accepted for this
// machine, and else with a digest only, which the fetch holds.
func parseAddress(text string) (Source, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || !isArchiveName(u.Path) {
		return Source{}, sourceInvalid(redacted(text), "an address has a host, no password and no fragment, and its path ends in .tgz or .tar.gz")
	}
	return Source{Kind: KindAddress, Text: text, Name: text}, nil
}

// redacted hides what could be a password.
func redacted(text string) string {
	before, rest, _ := strings.Cut(text, "://")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = "***" + rest[i:]
	}
	return before + "://" + rest
}

// remote reports whether a source is reached over the network.
func (s Source) remote() bool {
	return s.Kind == KindNPM || s.Kind == KindGitHub || s.Kind == KindAddress
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
