package plugin

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"path"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/plugin/download"
)

// githubAPI is where releases are asked for, unless GITHUB_API_URL names another
// (a GitHub Enterprise server sets it so).
const githubAPI = "https://api.github.com"

// release is what the API says of a release.
type release struct {
	Tag    string  `json:"tag_name"`
	Assets []asset `json:"assets"`
}

type asset struct {
	Name    string `json:"name"`
	API     string `json:"url"`
	Browser string `json:"browser_download_url"`
	Digest  string `json:"digest"` // sha256:… where the API tells it
}

// locateRelease finds the asset of a release. The source tree is never looked
// at.
func (h *Host) locateRelease(ctx context.Context, s Source) (place, error) {
	rel, err := h.release(ctx, s)
	if err != nil {
		return place{}, err
	}
	a, ok := rel.choose(s, h.Platform)
	if !ok {
		var names []string
		for _, x := range rel.Assets {
			names = append(names, x.Name)
		}
		return place{}, fault.New(fault.PluginPlatformUnsupported, "add", s.Text, "the release %s of %s has no archive for %s; it has %s",
			rel.Tag, s.Name, h.Platform, orNone(strings.Join(names, ", "))).WithHint("name one with #ASSET")
	}
	sums, err := h.checksums(ctx, rel)
	if err != nil {
		return place{}, err
	}
	p := place{
		resolved: a.Browser, version: rel.Tag, key: s.Name + "@" + rel.Tag + "#" + a.Name, request: h.assetRequest(a),
		integrity: sums[a.Name], said: "the checksums of the release", client: &download.Client{Roots: h.Roots},
	}
	if p.integrity == "" {
		p.integrity, p.said = hexSum(strings.TrimPrefix(a.Digest, "sha256:")), "the release"
	}
	p.platforms = rel.others(s, sums)
	return p, nil
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// release asks for the release of the tag, or for the latest.
func (h *Host) release(ctx context.Context, s Source) (*release, error) {
	base := h.getenv("GITHUB_API_URL")
	if base == "" {
		base = githubAPI
	}
	which := "latest"
	if s.Spec != "" {
		which = "tags/" + url.PathEscape(s.Spec)
	}
	var body bytes.Buffer
	client := &download.Client{Roots: h.Roots}
	err := client.Get(ctx, download.Request{
		URL:    strings.TrimSuffix(base, "/") + "/repos/" + strings.TrimPrefix(s.Name, "github:") + "/releases/" + which,
		Accept: "application/vnd.github+json", Credential: h.githubToken, Max: 16 << 20,
	}, &body)
	if fault.Is(err, fault.PluginNotFound) {
		return nil, fault.Wrap(err, fault.PluginNotFound, "add", s.Text, "%s has no release %s", s.Name, orLatest(s.Spec)).
			WithHint("a plugin is an asset of a release; a private repository needs GH_TOKEN")
	}
	if err != nil {
		return nil, err
	}
	r := &release{}
	if err := json.Unmarshal(body.Bytes(), r); err != nil || r.Tag == "" {
		return nil, fault.New(fault.PluginFetchFailed, "add", s.Text, "the answer about the releases of %s cannot be understood", s.Name)
	}
	return r, nil
}

func orLatest(tag string) string {
	if tag == "" {
		return "at all"
	}
	return tag
}

// githubToken gives the caller's token, which is sent to the host of the API
// only: other addresses are not asked for it.
func (h *Host) githubToken(*url.URL) string {
	for _, name := range []string{"GH_TOKEN", "GITHUB_TOKEN"} {
		if token := h.getenv(name); token != "" {
			return "Bearer " + token
		}
	}
	return ""
}

// assetRequest fetches an asset: by the API where there is a token, since a
// private one is there only, else by its plain address.
func (h *Host) assetRequest(a asset) download.Request {
	if h.githubToken(nil) != "" && a.API != "" {
		return download.Request{URL: a.API, Accept: "application/octet-stream", Credential: h.githubToken}
	}
	return download.Request{URL: a.Browser}
}

// choose gives the asset that was asked for, or the one for a platform.
func (r *release) choose(s Source, platform string) (asset, bool) {
	names := []string{s.Asset}
	if s.Asset == "" {
		names = r.names(s, platform)
	}
	for _, name := range names {
		for _, a := range r.Assets {
			if a.Name == name {
				return a, true
			}
		}
	}
	return asset{}, false
}

// names gives the names that an archive for a platform may have, in order.
func (r *release) names(s Source, platform string) []string {
	repo := path.Base(s.Name)
	system, arch, _ := strings.Cut(platform, "/")
	version := strings.TrimPrefix(r.Tag, "v")
	var out []string
	for _, stem := range []string{
		repo + "_" + system + "_" + arch, repo + "-" + system + "-" + arch, repo + "-" + version + "-" + system + "-" + arch, repo,
	} {
		out = append(out, stem+".tgz", stem+".tar.gz")
	}
	return out
}

// others gives the archives of platforms that have one of their own, with the
// digest that is known without fetching them.
func (r *release) others(s Source, sums map[string]string) map[string]Packed {
	if s.Asset != "" {
		return nil
	}
	out := map[string]Packed{}
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"} {
		if a, ok := r.choose(s, platform); ok {
			sum := sums[a.Name]
			if sum == "" {
				sum = hexSum(strings.TrimPrefix(a.Digest, "sha256:"))
			}
			out[platform] = Packed{Resolved: a.Browser, Integrity: sum}
		}
	}
	return out
}

// checksums reads the checksum asset of a release, if it has one (case 54).
func (h *Host) checksums(ctx context.Context, r *release) (map[string]string, error) {
	for _, name := range []string{"SHA256SUMS", "checksums.txt"} {
		a, ok := r.choose(Source{Asset: name}, "")
		if !ok {
			continue
		}
		var body bytes.Buffer
		request := h.assetRequest(a)
		request.Max = 1 << 20
		client := &download.Client{Roots: h.Roots}
		if err := client.Get(ctx, request, &body); err != nil {
			return nil, err
		}
		return readSums(body.String()), nil
	}
	return nil, nil
}

// readSums reads lines of a digest in hex and a name.
func readSums(text string) map[string]string {
	sums := map[string]string{}
	for line := range strings.Lines(text) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if s := hexSum(sum); s != "" {
			sums[strings.TrimLeft(name, " *")] = s
		}
	}
	return sums
}

// hexSum gives a sha256 digest in hex as it is written in the lock, "" = it is
// none.
func hexSum(text string) string {
	sum, err := hex.DecodeString(text)
	if err != nil || len(sum) != 32 {
		return ""
	}
	return "sha256-" + base64.StdEncoding.EncodeToString(sum)
}
