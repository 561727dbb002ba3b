package profile

// Document reads one YAML document by the rules of profiles (plugins.md 14) and
// gives its plain data: map[string]any, []any, string, int64, float64, bool or
// nil. source names it in the error, which is PROFILE_INVALID with its place.
func Document(content []byte, source string) (any, error) {
	ps := &problems{}
	v := parse(content, Origin{Layer: LayerFile, Source: source}, nil, ps)
	if err := asError(ps.sorted()); err != nil {
		return nil, err
	}
	return v.any(), nil
}
