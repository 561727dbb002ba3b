package profile

// merger lays values of a higher layer over those of lower ones: maps key by
// key, scalars and lists as a whole, null for the default (plugins.md 15).
type merger struct {
	problems *problems
	// atomic reports whether the value at a path is one thing even when it is
	// written as a map: a reference to a secret.
	atomic func(path []string) bool
}

func (m merger) merge(low, high *value, path []string) *value {
	switch {
	case high == nil:
		return low
	case low == nil:
		return high
	case high.kind == kindMap && low.kind == kindMap && !m.isAtomic(path):
		return m.mergeMaps(low, high, path)
	}
	if !m.isAtomic(path) && high.kind != kindNull && low.kind != kindNull && (high.kind == kindMap) != (low.kind == kindMap) {
		m.problems.invalid(high.origin, joinPath(path), "%s is %s here and %s at %s",
			joinPath(path), article(high.kind), article(low.kind), low.origin.place()).
			hint("write the same kind in both, or null to return to the default")
		high.broken = true
	}
	laid := *high
	laid.over = low.history()
	return &laid
}

func (m merger) mergeMaps(low, high *value, path []string) *value {
	out := &value{kind: kindMap, origin: high.origin, over: low.over, broken: low.broken || high.broken}
	out.entries = append(out.entries, low.entries...)
	for _, e := range high.entries {
		e.value = m.merge(out.get(e.key), e.value, append(path[:len(path):len(path)], e.key))
		out.put(e)
	}
	return out
}

func (m merger) isAtomic(path []string) bool { return m.atomic != nil && m.atomic(path) }

// article gives the name of a kind for messages.
func article(k kind) string {
	switch k {
	case kindText:
		return "text"
	case kindInt:
		return "a whole number"
	case kindNumber:
		return "a number"
	case kindBool:
		return "true or false"
	case kindList:
		return "a list"
	case kindMap:
		return "a map"
	default:
		return "null"
	}
}
