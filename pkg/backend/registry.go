package backend

// Registry is a fixed set of providers.
type Registry []Provider

// Provider gives the provider of a name.
func (r Registry) Provider(name string) (Provider, bool) {
	for _, p := range r {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}

// Names gives the names in the order of the registry.
func (r Registry) Names() []string {
	names := make([]string, len(r))
	for i, p := range r {
		names[i] = p.Name
	}
	return names
}
