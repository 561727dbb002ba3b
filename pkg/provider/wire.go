package provider

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/remotefs"
)

// Raw is text that need not be UTF-8: a path, an argument, an environment entry.
// In JSON it is a string, or {"b64": "…"} where a string cannot hold it
// (plugins.md 32).
type Raw string

type rawBytes struct {
	B64 []byte `json:"b64"`
}

// MarshalJSON gives a string where that is exact.
func (r Raw) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(r)) {
		return json.Marshal(string(r))
	}
	return json.Marshal(rawBytes{[]byte(r)})
}

// UnmarshalJSON takes both forms.
func (r *Raw) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var x rawBytes
		if err := json.Unmarshal(b, &x); err != nil {
			return err
		}
		*r = Raw(x.B64)
		return nil
	}
	return json.Unmarshal(b, (*string)(r))
}

// wireTarget is a target with what can be derived from it, so that process path
// and URL need no call.
type wireTarget struct {
	Key         Raw    `json:"key"`
	DisplayPath Raw    `json:"displayPath"`
	ProcessPath Raw    `json:"processPath"`
	URL         string `json:"url"`
}

func encodeTarget(f remotefs.FS, t remotefs.Target) wireTarget {
	p, _ := f.ProcessPath(t)
	u, _ := f.FileURL(t)
	return wireTarget{Raw(t.Key), Raw(t.Display), Raw(p), u}
}

func (w wireTarget) decode() remotefs.Target {
	return remotefs.Target{Key: string(w.Key), Display: string(w.DisplayPath)}
}

// wireAt names a file by target or by path.
type wireAt struct {
	Target *wireTarget `json:"target,omitempty"`
	Path   Raw         `json:"path,omitempty"`
	Cwd    Raw         `json:"cwd,omitempty"`
}

func encodeAt(at remotefs.At) wireAt {
	if at.Target.Key != "" {
		return wireAt{Target: &wireTarget{Key: Raw(at.Target.Key), DisplayPath: Raw(at.Target.Display)}}
	}
	return wireAt{Path: Raw(at.Path), Cwd: Raw(at.Cwd)}
}

func (w wireAt) decode() remotefs.At {
	if w.Target != nil {
		return remotefs.AtTarget(w.Target.decode())
	}
	return remotefs.AtPath(string(w.Path), string(w.Cwd))
}

// wireInfo is what is known of an entry; facts that are not known are left out.
type wireInfo struct {
	Type       remotefs.Type `json:"type"`
	Size       *int64        `json:"size,omitempty"`
	Version    string        `json:"version,omitempty"`
	Mode       string        `json:"mode,omitempty"`
	MTime      string        `json:"mtime,omitempty"`
	Owner      string        `json:"owner,omitempty"`
	Group      string        `json:"group,omitempty"`
	LinkTarget Raw           `json:"linkTarget,omitempty"`
}

func encodeInfo(i *remotefs.Info) *wireInfo {
	if i == nil {
		return nil
	}
	w := &wireInfo{Type: i.Type, Size: size(i.Size), Version: i.Version, Owner: i.Owner, Group: i.Group, LinkTarget: Raw(i.LinkTarget)}
	if i.Mode >= 0 {
		w.Mode = fmt.Sprintf("%04o", i.Mode)
	}
	if !i.ModTime.IsZero() {
		w.MTime = i.ModTime.UTC().Format(time.RFC3339Nano)
	}
	return w
}

func (w *wireInfo) decode() *remotefs.Info {
	if w == nil {
		return nil
	}
	i := &remotefs.Info{Type: w.Type, Size: -1, Version: w.Version, Mode: -1, Owner: w.Owner, Group: w.Group, LinkTarget: string(w.LinkTarget)}
	if w.Size != nil {
		i.Size = *w.Size
	}
	if mode, err := strconv.ParseUint(w.Mode, 8, 16); err == nil {
		i.Mode = int(mode)
	}
	if t, err := time.Parse(time.RFC3339Nano, w.MTime); err == nil {
		i.ModTime = t
	}
	return i
}

// size gives a pointer to a known size.
func size(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// wireEntry is one line of a listing.
type wireEntry struct {
	Name    string        `json:"name"`
	Raw     []byte        `json:"raw,omitempty"`
	Type    remotefs.Type `json:"type"`
	Size    *int64        `json:"size,omitempty"`
	Version string        `json:"version,omitempty"`
	Target  wireTarget    `json:"target"`
}

func encodeEntry(f remotefs.FS, e remotefs.DirEntry) wireEntry {
	return wireEntry{e.Name, e.RawName, e.Type, size(e.Size), e.Version, encodeTarget(f, e.Target)}
}

func (w wireEntry) decode() remotefs.DirEntry {
	e := remotefs.DirEntry{Name: w.Name, RawName: w.Raw, Type: w.Type, Size: -1, Version: w.Version, Target: w.Target.decode()}
	if w.Size != nil {
		e.Size = *w.Size
	}
	return e
}

// The parameters and results of the file methods (plugins.md 34).
type (
	pathParams struct {
		World string `json:"world"`
		Path  Raw    `json:"path"`
		Cwd   Raw    `json:"cwd,omitempty"`
	}
	atParams struct {
		World string `json:"world"`
		At    wireAt `json:"at"`
	}
	targetResult struct {
		Target wireTarget `json:"target"`
	}
	infoResult struct {
		Target *wireTarget `json:"target,omitempty"`
		Info   *wireInfo   `json:"info"`
	}
	readParams struct {
		atParams
		Text     bool   `json:"text"`
		MaxBytes *int64 `json:"maxBytes,omitempty"`
	}
	readResult struct {
		Target  wireTarget `json:"target"`
		Bytes   int64      `json:"bytes"`
		Version string     `json:"version"`
	}
	listResult struct {
		Target wireTarget `json:"target"`
		Count  int        `json:"count"`
	}
	// writeParams: Bytes nil means as many as come before FIN. Raw content need
	// not be text. Intent is "create", "replace" with Version, or empty.
	writeParams struct {
		atParams
		Bytes   *int64   `json:"bytes"`
		Intent  string   `json:"intent,omitempty"`
		Version string   `json:"version,omitempty"`
		Raw     bool     `json:"raw,omitempty"`
		Mode    *int     `json:"mode,omitempty"`
		InPlace bool     `json:"inPlace,omitempty"`
		Nonce   string   `json:"nonce"`
		Want    []string `json:"want,omitempty"`
		// BasisMax bounds the texts that "before" asks for, in bytes.
		BasisMax int64 `json:"basisMax,omitempty"`
	}
	writeResult struct {
		Target    wireTarget         `json:"target"`
		Operation remotefs.Operation `json:"operation"`
		Version   string             `json:"version"`
		Before    *textSize          `json:"before"`
	}
	textSize struct {
		Bytes int64 `json:"bytes"`
	}
	// editParams: one edit stands in OldBytes, NewBytes and ReplaceAll; the
	// further ones, and what is not in the contract, need the feature "edits".
	editParams struct {
		atParams
		editSizes
		Version      string      `json:"version,omitempty"`
		More         []editSizes `json:"more,omitempty"`
		NormalizeEOL bool        `json:"normalizeEol,omitempty"`
		DryRun       bool        `json:"dryRun,omitempty"`
		InPlace      bool        `json:"inPlace,omitempty"`
		Nonce        string      `json:"nonce"`
		Want         []string    `json:"want,omitempty"`
		BasisMax     int64       `json:"basisMax,omitempty"`
	}
	editSizes struct {
		OldBytes   int64 `json:"oldBytes"`
		NewBytes   int64 `json:"newBytes"`
		ReplaceAll bool  `json:"replaceAll"`
	}
	editResult struct {
		Target       wireTarget `json:"target"`
		Version      string     `json:"version"`
		Bytes        int64      `json:"bytes"`
		Replacements int        `json:"replacements"`
		BeforeBytes  int64      `json:"beforeBytes"`
		AfterBytes   int64      `json:"afterBytes"`
		// Basis says that the texts were sent; both may be empty.
		Basis bool `json:"basis,omitempty"`
	}
)

// FeatureEdits is the feature of a provider that takes several edits in one
// call, a dry run, in-place and normalised line endings.
const FeatureEdits = "edits"

// FeatureOpened is the feature of a provider whose fs.read of text begins with
// the event "opened": target and info of the file, before its content. Without
// it a reader that wants both asks twice.
const FeatureOpened = "opened"

const eventOpened = "opened"

// basisMax is the bound of the texts that a caller wants to see.
func basisMax(asked int64) int64 {
	if asked > 0 {
		return asked
	}
	return remotefs.DefaultBasisMax
}
