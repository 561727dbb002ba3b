package backend

// Schema is the closed set of keys of a provider's config.
type Schema []Field

// Kind is the kind of a config value.
type Kind int

// The kinds of values. Milliseconds are plain integers whose key ends in Ms.
const (
	KindText Kind = iota
	KindInt
	KindBool
	KindList // of text
	KindMap  // of text
)

// Field is one key.
type Field struct {
	Key      string
	Kind     Kind
	Doc      string // one line, with the unit
	Required bool
	// Secret: the value is a reference, resolved when the world is opened and
	// never printed.
	Secret  bool
	Default any      // nil = none
	Min     int64    // of KindInt, with Max != 0
	Max     int64    // 0 = no bound
	Enum    []string // of KindText
}

// Field gives the field of a key.
func (s Schema) Field(key string) (Field, bool) {
	for _, f := range s {
		if f.Key == key {
			return f, true
		}
	}
	return Field{}, false
}
