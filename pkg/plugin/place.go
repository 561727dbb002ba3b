package plugin

import (
	"context"
	"io"
	"strings"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/plugin/download"
)

// place is where the archive of a source is, and what is known of its bytes
// before they are there.
type place struct {
	// resolved is the address that the lock records.
	resolved string
	// request fetches it. Its URL can be another than resolved: that of an API
	// which takes a credential.
	request download.Request
	// client is the one for it; nil = the standard one.
	client *download.Client
	// version is that of a package, or the tag of a release.
	version string
	// integrity is the digest that the archive must have, as sha512-… or
	// sha256-…; "" = none is known. said names who says so.
	integrity, said string
	// digest, if set, is the digest by which the cache has the archive.
	digest string
	// key names the archive among those that were seen, without its version.
	key string
	// platforms are the archives of other platforms, where they are others.
	platforms map[string]Packed
}

// locate finds the archive of a source that is reached over the network.
func (h *Host) locate(ctx context.Context, s Source, o AddOptions) (place, error) {
	if h.Offline {
		return h.locateOffline(s)
	}
	switch s.Kind {
	case KindNPM:
		return h.locatePackage(ctx, s, o.registry)
	case KindGitHub:
		return h.locateRelease(ctx, s)
	default:
		plain := o.Integrity != ""
		return place{resolved: s.Name, key: s.Name, request: download.Request{URL: s.Name, Plain: plain}}, nil
	}
}

// bringRemote copies the bytes of an archive from the cache or from where it is.
func (h *Host) bringRemote(ctx context.Context, p place, w io.Writer, lim Limits) error {
	if p.digest != "" {
		if f, err := h.cached(p.digest); err == nil {
			defer f.Close()
			_, err := io.Copy(w, f)
			return err
		}
		if h.Offline {
			return fault.New(fault.PluginFetchFailed, "add", p.resolved, "offline: the archive %s of %s is not in the cache", p.digest, quotePath(p.resolved)).
				WithHint("run it once without --offline, or name a local archive")
		}
	}
	client := p.client
	if client == nil {
		client = &download.Client{Roots: h.Roots}
	}
	p.request.Max = lim.Packed
	if h.Progress != nil {
		bar := h.Progress(p.resolved)
		defer bar.Close()
		p.request.Begin = bar.Begin
		w = io.MultiWriter(w, bar)
	}
	return client.Get(ctx, p.request, w)
}

// Progress is told of a download: its size (-1 = not known), its bytes, and its
// end.
type Progress interface {
	Begin(size int64)
	io.WriteCloser
}

// locateOffline finds a source among those that were seen and are in the cache
// (case 59).
func (h *Host) locateOffline(s Source) (place, error) {
	known, err := readSeen(h.seenPath())
	if err != nil {
		return place{}, err
	}
	best := place{}
	for key, digest := range known {
		name, version, _ := strings.Cut(key, " ")
		if s.matches(name, version) && (best.digest == "" || newer(version, best.version)) {
			best = place{key: name, version: version, digest: digest, integrity: digest, said: "what was seen before"}
		}
	}
	if best.digest == "" {
		return place{}, fault.New(fault.PluginFetchFailed, "add", s.Text, "offline: %s was never fetched on this machine", quotePath(s.Text)).
			WithHint("run it once without --offline, or name a local archive")
	}
	best.resolved = h.cachedFrom(best.digest)
	return best, nil
}

// matches reports whether an archive that was seen is one of this source.
func (s Source) matches(name, version string) bool {
	switch s.Kind {
	case KindNPM:
		r, err := ParseRange(s.Spec)
		return name == s.Name && (s.Spec == "latest" || err == nil && r.Holds(version))
	case KindGitHub:
		repo, rest, _ := strings.Cut(name, "@")
		tag, asset, _ := strings.Cut(rest, "#")
		return repo == s.Name && (s.Spec == "" || s.Spec == tag) && (s.Asset == "" || s.Asset == asset)
	}
	return name == s.Name
}
