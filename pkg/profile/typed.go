package profile

import (
	"context"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
)

// Profile is a composition without problems, ready to be opened.
type Profile struct {
	Name string
	// Composition is what the profile was made from.
	Composition *Composition
	// FS and Exec serve files and processes: the same row unless the world is
	// split.
	FS   *Row
	Exec *Row

	FSBlock FS
	// ExecBlock, TermBlock and MountBlock hold for the commands of these names.
	ExecBlock  Exec
	TermBlock  Term
	MountBlock Mount
	// Fence is nil where nothing is fenced.
	Fence *Fence
	Env   Env
	Keep  Keep

	blocks *value
}

// Row is a provider with its checked config.
type Row struct {
	ID       string
	Provider backend.Provider
	Services []backend.Service
	// Config has its defaults and no secrets.
	Config map[string]any
	// Cwd is the working directory asked for; "" = the backend's default.
	Cwd string
	// Secrets are the references by key.
	Secrets map[string]Reference
}

// FS is the block fs: (remotefs.md 15).
type FS struct {
	ReadLimit         int64
	ReadMaxLineLength int64
	ReadMaxBytes      int64
	ReadStreamMinSize int64
	DiffBasisMaxBytes int64
	NewFileMode       int  // -1 = the world's default
	Undo              bool // changes are remembered
	UndoMaxBytes      int64
	UndoMaxHours      int64
	Search            Search
}

// Search is the block fs.search: (remotefs.md 18).
type Search struct {
	GlobMaxResults           int64
	GrepMaxMatches           int64
	GrepMaxLineBytes         int64
	RawOutputMaxBytes        int64
	StderrMaxBytes           int64
	Timeout                  time.Duration
	Grace                    time.Duration
	SearchMetaMaxBytes       int64
	SampleOverCapGlobResults bool
}

// Exec is the block exec: (remoteexec.md SH-2). Whether a key was written
// answers Profile.Written.
type Exec struct {
	Timeout        time.Duration
	MaxTimeout     time.Duration
	MaxOutputBytes int64
	MaxSpillBytes  int64
	Grace          time.Duration
}

// Term is the block term: (remoteexec.md TS-4).
type Term struct {
	Rows, Cols         int
	ScrollbackLines    int64
	ScrollbackMaxBytes int64
	MaxReadBytes       int64
	PollInterval       time.Duration
	ExactProbeAfter    time.Duration
	IdleSilence        time.Duration
	HandoffGrace       time.Duration
	Timeout            time.Duration
	DisposeGrace       time.Duration
	ShellPath          string
	ShellArgs          []string
}

// Mount is the block mount: (mount.md 2). A pointer is nil where the key has no
// value.
type Mount struct {
	Enabled             bool
	Capacity            int64
	TTL                 time.Duration
	MaxPinnedFiles      int64
	MinSavedTokens      int64
	MaxFingerprintBytes int64
	MaxManagedBytes     int64
	ExcludeGlobs        []string
	StatsFile           string // "" = none
	FreshnessEnabled    bool
	FreshnessThreshold  float64
	SafeRatio           float64
	SafeTokens          *int64
	PinAfter            int64
	ContextWindow       int64
	ResendBudget        *int64
	Session             string // "" = none
	ValveReads          int64
}

// Fence is the block fence: (remotefs.md 12).
type Fence struct {
	Mode          string // read-only, workspace-write or danger-full-access
	WorkspaceRoot string // "" = the working directory
}

// Env is the block env:, the environment of started processes.
type Env struct {
	Pass   []string // names taken from the caller
	Set    map[string]string
	Remove []string
}

// Keep is the key keep:. Written and without Idle, it is off; not Written, the
// keeper has its default.
type Keep struct {
	Written bool
	Idle    time.Duration
}

// Profile gives the typed result, or the first problem.
func (c *Composition) Profile() (*Profile, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	p := &Profile{Name: c.Name, Composition: c, blocks: c.root}
	p.FS = c.row(c.layers.chosen[backend.ServiceFS])
	p.Exec = p.FS
	if exec := c.layers.chosen[backend.ServiceExec]; exec != c.layers.chosen[backend.ServiceFS] {
		p.Exec = c.row(exec)
	}
	p.FSBlock, p.ExecBlock = readFS(c.root.get("fs")), readExec(c.root.get("exec"))
	p.TermBlock, p.MountBlock = readTerm(c.root.get("term")), readMount(c.root.get("mount"))
	if fence := c.root.get("fence"); !fence.isNull() {
		p.Fence = &Fence{Mode: fence.str("mode"), WorkspaceRoot: fence.str("workspaceRoot")}
	}
	env := c.root.get("env")
	p.Env = Env{Pass: env.strs("pass"), Remove: env.strs("remove"), Set: map[string]string{}}
	if set := env.get("set"); set != nil {
		for _, e := range set.entries {
			p.Env.Set[e.key] = unescape(e.value.text)
		}
	}
	p.Keep, _ = parseKeep(c.root.str("keep"))
	return p, nil
}

// row gives the typed form of a chosen row.
func (c *Composition) row(r *row) *Row {
	provider := c.layers.provider(r.name.text)
	full := c.configs[r]
	out := &Row{ID: r.id, Provider: *provider, Services: c.layers.services(r), Secrets: map[string]Reference{},
		Config: plainConfig(provider, full)}
	for _, f := range provider.Config {
		if v := full.get(f.Key); f.Secret && !v.isNull() {
			ref, _ := reference(v)
			ref.Default = v.origin.Layer == LayerDefault
			out.Secrets[f.Key] = ref
		}
	}
	out.Cwd, _ = out.Config["cwd"].(string)
	return out
}

// Written reports whether a layer above the defaults gave the block's value,
// such as Written("exec", "timeoutMs").
func (p *Profile) Written(path ...string) bool {
	v := p.blocks
	for _, key := range path {
		v = v.get(key)
	}
	return !v.isNull() && v.origin.Layer != LayerDefault
}

func (v *value) num(key string) int64 {
	if n := v.get(key); n != nil {
		return n.integer
	}
	return 0
}

func (v *value) optional(key string) *int64 {
	if n := v.get(key); !n.isNull() {
		return &n.integer
	}
	return nil
}

func (v *value) float(key string) float64 {
	n := v.get(key)
	if n != nil && n.kind == kindInt {
		return float64(n.integer)
	}
	if n == nil {
		return 0
	}
	return n.number
}

func (v *value) ms(key string) time.Duration { return time.Duration(v.num(key)) * time.Millisecond }

func (v *value) str(key string) string {
	if s := v.get(key); !s.isNull() {
		return unescape(s.text)
	}
	return ""
}

func (v *value) strs(key string) []string {
	list := v.get(key)
	if list.isNull() {
		return nil
	}
	out := make([]string, len(list.items))
	for i, item := range list.items {
		out[i] = unescape(item.text)
	}
	return out
}

func readFS(v *value) FS {
	search := v.get("search")
	fs := FS{
		ReadLimit: v.num("readLimit"), ReadMaxLineLength: v.num("readMaxLineLength"), ReadMaxBytes: v.num("readMaxBytes"),
		ReadStreamMinSize: v.num("readStreamMinSize"), DiffBasisMaxBytes: v.num("diffBasisMaxBytes"), NewFileMode: -1,
		Undo: v.get("undo").isTrue(), UndoMaxBytes: v.num("undoMaxBytes"), UndoMaxHours: v.num("undoMaxHours"),
		Search: Search{
			GlobMaxResults: search.num("globMaxResults"), GrepMaxMatches: search.num("grepMaxMatches"),
			GrepMaxLineBytes: search.num("grepMaxLineBytes"), RawOutputMaxBytes: search.num("rawOutputMaxBytes"),
			StderrMaxBytes: search.num("stderrMaxBytes"), Timeout: search.ms("timeoutMs"), Grace: search.ms("graceMs"),
			SearchMetaMaxBytes:       search.num("searchMetaMaxBytes"),
			SampleOverCapGlobResults: search.get("sampleOverCapGlobResults").isTrue(),
		},
	}
	if mode, ok := parseMode(v.str("newFileMode")); ok {
		fs.NewFileMode = mode
	}
	return fs
}

func readExec(v *value) Exec {
	return Exec{Timeout: v.ms("timeoutMs"), MaxTimeout: v.ms("maxTimeoutMs"), MaxOutputBytes: v.num("maxOutputBytes"),
		MaxSpillBytes: v.num("maxSpillBytes"), Grace: v.ms("graceMs")}
}

func readTerm(v *value) Term {
	return Term{
		Rows: int(v.num("rows")), Cols: int(v.num("cols")),
		ScrollbackLines: v.num("scrollbackLines"), ScrollbackMaxBytes: v.num("scrollbackMaxBytes"), MaxReadBytes: v.num("maxReadBytes"),
		PollInterval: v.ms("pollIntervalMs"), ExactProbeAfter: v.ms("exactProbeAfterMs"), IdleSilence: v.ms("idleSilenceMs"),
		HandoffGrace: v.ms("handoffGraceMs"), Timeout: v.ms("timeoutMs"), DisposeGrace: v.ms("disposeGraceMs"),
		ShellPath: v.str("shellPath"), ShellArgs: v.strs("shellArgs"),
	}
}

func readMount(v *value) Mount {
	return Mount{
		Enabled: v.get("enabled").isTrue(), Capacity: v.num("capacity"), TTL: v.ms("ttlMs"),
		MaxPinnedFiles: v.num("maxPinnedFiles"), MinSavedTokens: v.num("minSavedTokens"),
		MaxFingerprintBytes: v.num("maxFingerprintBytes"), MaxManagedBytes: v.num("maxManagedBytes"),
		ExcludeGlobs: v.strs("excludeGlobs"), StatsFile: v.str("statsFile"), FreshnessEnabled: v.get("freshnessEnabled").isTrue(),
		FreshnessThreshold: v.float("freshnessThreshold"), SafeRatio: v.float("safeRatio"), SafeTokens: v.optional("safeTokens"),
		PinAfter: v.num("pinAfter"), ContextWindow: v.num("contextWindow"), ResendBudget: v.optional("resendBudget"),
		Session: v.str("session"), ValveReads: v.num("valveReads"),
	}
}

// OpenRequest gives what the row's provider needs, but for what only the command
// knows.
func (r *Row) OpenRequest(p *Profile, s *Secrets) backend.OpenRequest {
	return backend.OpenRequest{
		Config: r.Config, Cwd: r.Cwd, NewFileMode: p.FSBlock.NewFileMode,
		Secret: func(ctx context.Context, key string) (string, error) {
			ref, ok := r.Secrets[key]
			if !ok {
				return "", nil
			}
			return s.Resolve(ctx, r.ID+".config."+key, ref)
		},
	}
}
