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
