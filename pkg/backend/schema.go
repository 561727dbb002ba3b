package backend

// Schema is the closed set of keys of a provider's config. One table serves
// checking, defaults, secrets, the composed dump and explanations.
type Schema []Field

// Kind is the kind of a config value.
type Kind int

// The kinds of values and what the checked config holds for them.
// Milliseconds are plain integers whose key ends in Ms.
const (
	KindText   Kind = iota // string
	KindInt                // int64
	KindBool               // bool
	KindList               // []any of Items, or of text
	KindMap                // map[string]any of Fields, or of Items, or of text
	KindNumber             // float64
	KindAny                // whatever was written
)

// Field is one key.
type Field struct {
	Key      string
	Kind     Kind
	Doc      string // one line, with the unit
	Required bool
	// Secret: the value is a reference, resolved when the world is opened and
	// never printed. It stands at the top of a config, and Kind is KindText.
	Secret bool
	// Default is what the config holds when nobody wrote the key; nil = the key
	// is left out. The default of a secret is a reference such as "${NAME}";
	// that it leads nowhere is no error.
	Default any
	// Min and Max bound KindInt and KindNumber, both included. A Max of 0 is no
	// bound, a Min of 0 refuses negative values; math.Inf(-1) accepts them.
	Min  float64
	Max  float64
	Enum []string // of KindText: the accepted words
	// Fields is the closed set of keys of a KindMap. Without it any key is
	// accepted, and Items says what the values are.
	Fields Schema
	// Items describes the members of a KindList or KindMap; nil = text.
	Items *Field
	// Check is a further rule on a value of the right kind. It gives the rest of
	// a sentence that begins with the key, such as "must be an absolute path",
	// or "". It never repeats the value and does no I/O.
	Check func(value any) string
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

// Keys gives the keys in the order of the table.
func (s Schema) Keys() []string {
	keys := make([]string, len(s))
	for i, f := range s {
		keys[i] = f.Key
	}
	return keys
}

// Item gives what the members of a list or an open map are.
func (f Field) Item() Field {
	if f.Items != nil {
		return *f.Items
	}
	return Field{Key: f.Key, Kind: KindText}
}
