package profile

import (
	"math"
	"strings"
	"time"

	"github.com/afield-dev/afield/pkg/backend"
)

const maxDelayMs = math.MaxInt32

// topSchema is the closed set of top-level keys. The blocks of the command
// layer have their defaults here and nowhere else.
func topSchema() backend.Schema {
	return backend.Schema{
		{Key: "version", Kind: backend.KindInt, Doc: "of the format: 1", Check: isVersion},
		{Key: "profile", Kind: backend.KindText, Doc: "in a project file: the profile that it builds on"},
		{Key: "description", Kind: backend.KindText, Doc: "shown by profile list"},
		{Key: "backend", Kind: backend.KindText, Doc: "the provider of files and processes"},
		{Key: "config", Kind: backend.KindMap, Doc: "the config of backend", Items: anything()},
		{Key: "rows", Kind: backend.KindList, Doc: "providers by id", Items: anything()},
		{Key: "splitWorld", Kind: backend.KindBool, Doc: "let fs and exec come from different worlds"},
		{Key: "fs", Kind: backend.KindMap, Doc: "defaults of the fs commands", Fields: fsSchema()},
		{Key: "exec", Kind: backend.KindMap, Doc: "defaults of exec", Fields: execSchema()},
		{Key: "term", Kind: backend.KindMap, Doc: "defaults of terminals", Fields: termSchema()},
		{Key: "mount", Kind: backend.KindMap, Doc: "incremental reads", Fields: mountSchema()},
		{Key: "fence", Kind: backend.KindMap, Doc: "what may be changed; no block, no fence", Fields: fenceSchema()},
		{Key: "env", Kind: backend.KindMap, Doc: "environment of started processes", Fields: envSchema()},
		{Key: "plugins", Kind: backend.KindMap, Doc: "where plugins may come from", Fields: pluginsSchema()},
		{Key: "keep", Kind: backend.KindText, Doc: "idle time of the keeper such as 2m, or off", Check: isKeep},
	}
}

// anything is a value that something else checks.
func anything() *backend.Field { return &backend.Field{Kind: backend.KindAny} }

func count(key string, standard int, doc string) backend.Field {
	return backend.Field{Key: key, Kind: backend.KindInt, Doc: doc, Default: standard, Min: 1}
}

func millis(key string, standard int, doc string) backend.Field {
	f := count(key, standard, doc)
	f.Max = maxDelayMs
	return f
}

// fsSchema: remotefs.md 15 and 18.
func fsSchema() backend.Schema {
	return backend.Schema{
		count("readLimit", 2000, "lines of one view, default and largest"),
		count("readMaxLineLength", 2000, "UTF-16 units kept of one line"),
		count("readMaxBytes", 51200, "bytes of the lines of one view"),
		count("readStreamMinSize", 10485760, "bytes from which a file is streamed"),
		count("diffBasisMaxBytes", 10485760, "bytes up to which a write knows the text before it"),
		{Key: "newFileMode", Kind: backend.KindText, Doc: `mode of new files in octal digits, such as "0600"`, Check: isMode},
		{Key: "undo", Kind: backend.KindBool, Doc: "remember what files held before a change, for fs undo", Default: false},
		count("undoMaxBytes", 268435456, "bytes of remembered content in all"),
		count("undoMaxHours", 168, "hours for which changes are remembered"),
		{Key: "search", Kind: backend.KindMap, Doc: "glob and grep", Fields: backend.Schema{
			count("globMaxResults", 100, "paths shown by glob"),
			count("grepMaxMatches", 250, "matches shown by grep"),
			count("grepMaxLineBytes", 2000, "bytes shown of a matching line"),
			count("rawOutputMaxBytes", 20000000, "bytes of raw output that are looked at"),
			count("stderrMaxBytes", 65536, "bytes kept of the searcher's messages"),
			millis("timeoutMs", 30000, "time of one search"),
			millis("graceMs", 3000, "time between TERM and KILL"),
			count("searchMetaMaxBytes", 65536, "bytes of data about a search"),
			{Key: "sampleOverCapGlobResults", Kind: backend.KindBool, Doc: "over the cap: a path of each top-level entry in turn", Default: false},
		}},
	}
}

// execSchema: remoteexec.md SH-2.
func execSchema() backend.Schema {
	return backend.Schema{
		millis("timeoutMs", 120000, "time of a command line"),
		millis("maxTimeoutMs", 600000, "largest time that can be asked for"),
		count("maxOutputBytes", 64000, "bytes kept of each stream"),
		count("maxSpillBytes", 67108864, "bytes of each spill file"),
		millis("graceMs", 3000, "time between TERM and KILL"),
	}
}

// termSchema: remoteexec.md TS-4.
func termSchema() backend.Schema {
	rows, cols := count("rows", 40, "rows of a terminal"), count("cols", 160, "columns of a terminal")
	rows.Max, cols.Max = 65535, 65535
	return backend.Schema{
		rows, cols,
		count("scrollbackLines", 10000, "lines kept"),
		count("scrollbackMaxBytes", 4194304, "bytes kept"),
		count("maxReadBytes", 262144, "bytes of one read, at most scrollbackMaxBytes"),
		millis("pollIntervalMs", 50, "time between looks for readiness"),
		millis("exactProbeAfterMs", 150, "time until the exact look"),
		millis("idleSilenceMs", 3000, "silence that counts as idle"),
		millis("handoffGraceMs", 500, "further silence after a prompt, at least one poll"),
		millis("timeoutMs", 30000, "time of one send"),
		millis("disposeGraceMs", 3000, "time between TERM and KILL at the end"),
		{Key: "shellPath", Kind: backend.KindText, Doc: "shell of a persistent session", Default: "/bin/bash", Check: isAbsolute},
		{Key: "shellArgs", Kind: backend.KindList, Doc: "its arguments", Default: []string{"--noprofile", "--norc", "-i"}},
	}
}

// mountSchema: mount.md 2.
func mountSchema() backend.Schema {
	ratio := func(key string, standard float64, doc string) backend.Field {
		return backend.Field{Key: key, Kind: backend.KindNumber, Doc: doc, Default: standard, Max: 1}
	}
	natural := func(key string, standard any, doc string) backend.Field {
		return backend.Field{Key: key, Kind: backend.KindInt, Doc: doc, Default: standard}
	}
	ttl := count("ttlMs", 300000, "time for which an unchanged stat is believed")
	ttl.Min = 1000
	return backend.Schema{
		{Key: "enabled", Kind: backend.KindBool, Doc: "off: every read is native", Default: true},
		count("capacity", 32, "cached identities that no mount pins"),
		ttl,
		count("maxPinnedFiles", 256, "mounted files of a session that stay cached"),
		natural("minSavedTokens", 16, "smallest saving that is worth an answer"),
		count("maxFingerprintBytes", 1000000, "bytes up to which a file keeps its lines"),
		count("maxManagedBytes", 16777216, "bytes up to which a file is managed"),
		{Key: "excludeGlobs", Kind: backend.KindList, Doc: "identities that are always read natively", Default: []string{}},
		{Key: "statsFile", Kind: backend.KindText, Doc: "file for totals of all sessions", Check: isNotBlank},
		{Key: "freshnessEnabled", Kind: backend.KindBool, Doc: "off: nothing expires", Default: true},
		ratio("freshnessThreshold", 0.6, "score below which a segment has expired"),
		ratio("safeRatio", 0.95, "safe part of the context window"),
		natural("safeTokens", nil, "safe part in tokens, wins over safeRatio"),
		natural("pinAfter", 1, "expiries from which a segment stays"),
		count("contextWindow", 128000, "tokens of the window when nobody tells"),
		natural("resendBudget", nil, "tokens above which a segment never expires"),
		{Key: "session", Kind: backend.KindText, Doc: "the session when nobody names one", Check: isSession},
		natural("valveReads", 2, "full covers in a row until a native read; 0 = never"),
	}
}

// fenceSchema: remotefs.md 12.
func fenceSchema() backend.Schema {
	return backend.Schema{
		{Key: "mode", Kind: backend.KindText, Doc: "what may be changed", Default: "read-only",
			Enum: []string{"read-only", "workspace-write", "danger-full-access"}},
		{Key: "workspaceRoot", Kind: backend.KindText, Doc: "directory that may be changed (default: the working directory)", Check: isNotBlank},
	}
}

func envSchema() backend.Schema {
	name := &backend.Field{Key: "name", Kind: backend.KindText, Check: isEnvName}
	return backend.Schema{
		{Key: "pass", Kind: backend.KindList, Doc: "variables of the caller that are handed on", Items: name},
		{Key: "set", Kind: backend.KindMap, Doc: "values, none of them secret", Check: areEnvNames},
		{Key: "remove", Kind: backend.KindList, Doc: "variables that are unset", Items: name},
	}
}

func pluginsSchema() backend.Schema {
	return backend.Schema{
		{Key: "registry", Kind: backend.KindText, Doc: "address of the registry", Check: isNotBlank},
		{Key: "sources", Kind: backend.KindList, Doc: "sources that are allowed"},
	}
}

func isVersion(v any) string {
	if v != int64(1) {
		return "must be 1"
	}
	return ""
}

func isNotBlank(v any) string {
	if strings.TrimSpace(v.(string)) == "" {
		return "must not be blank"
	}
	return ""
}

func isAbsolute(v any) string {
	if !strings.HasPrefix(v.(string), "/") {
		return "must be an absolute path"
	}
	return ""
}

func isMode(v any) string {
	if _, ok := parseMode(v.(string)); !ok {
		return `must be three or four octal digits in quotes, such as "0600"`
	}
	return ""
}

func parseMode(text string) (int, bool) {
	if len(text) < 3 || len(text) > 4 || len(text) == 4 && text[0] != '0' {
		return 0, false
	}
	mode := 0
	for _, r := range text {
		if r < '0' || r > '7' {
			return 0, false
		}
		mode = mode*8 + int(r-'0')
	}
	return mode, true
}

func isKeep(v any) string {
	if _, ok := parseKeep(v.(string)); !ok {
		return "must be off or a duration such as 2m, at most 24 days"
	}
	return ""
}

func parseKeep(text string) (Keep, bool) {
	if text == "off" {
		return Keep{Written: true}, true
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > maxDelayMs*time.Millisecond {
		return Keep{}, false
	}
	return Keep{Written: true, Idle: d}, true
}

func isSession(v any) string {
	if !ValidSession(v.(string)) {
		return "must be 1 to 128 of A-Z a-z 0-9 . _ - and not begin with a dash"
	}
	return ""
}

// ValidSession reports whether id names a session (mount.md 17.1).
func ValidSession(id string) bool {
	return id != "" && len(id) <= 128 && id[0] != '-' &&
		strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

func isEnvName(v any) string {
	if name := v.(string); name == "" || strings.Contains(name, "=") {
		return "must hold names of variables"
	}
	return ""
}

func areEnvNames(v any) string {
	for name := range v.(map[string]any) {
		if isEnvName(name) != "" {
			return "must hold names of variables"
		}
		if endsSecret(name) {
			return "must not hold credentials: hand " + quoteKey(name) + " on with env.pass"
		}
	}
	return ""
}

// endsSecret reports whether the last word of a variable's name is that of a
// credential: API_TOKEN is, TOKENIZERS_PARALLELISM and MONKEY are not.
func endsSecret(name string) bool {
	last := strings.ToUpper(name[strings.LastIndexByte(name, '_')+1:])
	switch last {
	case "KEY", "APIKEY", "PASSWORD", "SECRET", "TOKEN", "PASSPHRASE":
		return true
	}
	return false
}
