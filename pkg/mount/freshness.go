package mount

import (
	"cmp"
	"math"
	"slices"

	"github.com/afield-dev/afield/pkg/mount/ledger"
)

// Level says how likely it is that the model still attends to lines.
type Level string

// The levels from best to worst; Unknown stands between fresh and ok.
const (
	Fresh   Level = "fresh"
	OK      Level = "ok"
	Warn    Level = "warn"
	Expired Level = "expired"
	Unknown Level = "unknown"
)

// severity orders levels: a file shows the worst of its segments.
func (l Level) severity() int {
	return slices.Index([]Level{Fresh, Unknown, OK, Warn, Expired}, l)
}

// worst gives the level a file shows.
func worst(levels []Level) Level {
	if len(levels) == 0 {
		return Unknown
	}
	return slices.MaxFunc(levels, func(a, b Level) int { return cmp.Compare(a.severity(), b.severity()) })
}

// usage is where the conversation stands: tokens used and the window they have.
type usage struct {
	used   int64 // or ledger.Unknown
	window int64
}

// known reports whether anything can expire at all.
func (u usage) known() bool { return u.used >= 1 }

// safe is the context size up to which nothing loses attention.
func (c Config) safe(window int64) float64 {
	if c.SafeTokens != None {
		return float64(min(c.SafeTokens, window))
	}
	return c.SafeRatio * float64(window)
}

// score is 1 for lines that are surely attended to and falls to 0 (mount.md
// 13). It is false where position or context are not known.
func (c Config) score(s ledger.Segment, u usage) (float64, bool) {
	if u.used == ledger.Unknown || s.Position == ledger.Unknown {
		return 0, false
	}
	if !u.known() || s.Expired >= c.PinAfter {
		return 1, true
	}
	used, tokens := float64(u.used), float64(max(s.Tokens, 0))
	depth := (used - (float64(s.Position) + tokens/2)) / used
	return 1 - c.pressure(u)*min(1, max(0, depth)), true
}

func (c Config) pressure(u usage) float64 {
	safe, used, window := c.safe(u.window), float64(u.used), float64(u.window)
	switch {
	case used <= safe:
		return 0
	case window <= safe:
		return 1
	default:
		return math.Sqrt(min(1, (used-safe)/(window-safe)))
	}
}

// level puts the score of a segment in words.
func (c Config) level(s ledger.Segment, u usage) Level {
	score, ok := c.score(s, u)
	switch {
	case !ok || !u.known():
		return Unknown
	case s.Position >= u.used:
		return Fresh
	case score < c.FreshnessThreshold:
		return Expired
	case score < c.FreshnessThreshold+0.15:
		return Warn
	case score < 0.85:
		return OK
	default:
		return Fresh
	}
}

// prune parts segments into those that are still believed and those that have
// expired, the latter with their count raised.
func (c Config) prune(segments []ledger.Segment, u usage) (kept []ledger.Segment, expired []ledger.Past) {
	for _, s := range segments {
		if c.expires(s, u) {
			expired = append(expired, ledger.Past{Range: s.Range, Count: s.Expired + 1})
		} else {
			kept = append(kept, s)
		}
	}
	return kept, expired
}

func (c Config) expires(s ledger.Segment, u usage) bool {
	switch {
	case !c.FreshnessEnabled || !u.known() || s.Position == ledger.Unknown || s.Position >= u.used:
		return false
	case s.Expired >= c.PinAfter:
		return false
	case c.ResendBudget != None && s.Tokens > c.ResendBudget:
		return false
	}
	score, _ := c.score(s, u)
	return score < c.FreshnessThreshold
}

// inherit consumes the history that ranges touch: count is the highest of it,
// consumed and left are its parts.
func inherit(ranges []ledger.Range, history []ledger.Past) (count int, consumed []ledger.Range, left []ledger.Past) {
	for _, past := range history {
		if len(ledger.Intersect(ranges, []ledger.Range{past.Range})) == 0 {
			left = append(left, past)
			continue
		}
		consumed = append(consumed, past.Range)
		count = max(count, past.Count)
	}
	return count, consumed, left
}

// remember adds items to the history; of equal ranges the highest count stays.
func remember(history []ledger.Past, items ...ledger.Past) []ledger.Past {
	out := slices.Clone(history)
	for _, item := range items {
		at := slices.IndexFunc(out, func(p ledger.Past) bool { return p.Range == item.Range })
		if at < 0 {
			out = append(out, item)
		} else {
			out[at].Count = max(out[at].Count, item.Count)
		}
	}
	return out
}
