package profile

import (
	"strings"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/fault"
)

// Reference says where a secret is: exactly one of the three is set. It never
// holds the secret itself.
type Reference struct {
	Env     string
	File    string
	Command []string
	// Default: nobody wrote the reference; that it leads nowhere is no error.
	Default bool
	origin  Origin
}

const secretForms = "write ${NAME}, {file: PATH} or {command: [PROGRAM, …]}"

// looksSecret reports whether a key of an unknown provider counts as secret by
// its name.
func looksSecret(key string) bool {
	upper := strings.ToUpper(key)
	for _, word := range []string{"KEY", "PASSWORD", "SECRET", "TOKEN", "PASSPHRASE"} {
		if strings.Contains(upper, word) {
			return true
		}
	}
	return false
}

// isSecret reports whether the key of a row's config is secret: by the schema,
// or by its name where no schema knows it.
func isSecret(p *backend.Provider, key string) bool {
	if p != nil {
		if f, ok := p.Config.Field(key); ok {
			return f.Secret
		}
	}
	return looksSecret(key)
}

// envReference gives the name in a text that is ${NAME} as a whole.
func envReference(text string) (string, bool) {
	name, ok := strings.CutPrefix(text, "${")
	if !ok || !strings.HasSuffix(name, "}") {
		return "", false
	}
	name = strings.TrimSuffix(name, "}")
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return "", false
		}
	}
	return name, name != ""
}

// hasReference reports whether ${ stands in a text other than as $${.
func hasReference(text string) bool {
	return strings.Contains(strings.ReplaceAll(text, "$${", ""), "${")
}

// unescape gives the text with $${ written as ${.
func unescape(text string) string { return strings.ReplaceAll(text, "$${", "${") }

// reference reads the forms of a secret. ok is false for a literal and for a
// map of another shape.
func reference(v *value) (r Reference, ok bool) {
	r.origin = v.origin
	switch {
	case v.kind == kindText:
		r.Env, ok = envReference(v.text)
		return r, ok
	case v.kind != kindMap || len(v.entries) != 1:
		return r, false
	}
	e := v.entries[0]
	switch {
	case e.key == "file" && e.value.kind == kindText && e.value.text != "":
		r.File = e.value.text
		return r, true
	case e.key == "command" && e.value.kind == kindList && len(e.value.items) > 0:
		for _, item := range e.value.items {
			if item.kind != kindText {
				return r, false
			}
			r.Command = append(r.Command, unescape(item.text))
		}
		return r, r.Command[0] != ""
	}
	return r, false
}

// checkSecret reports a value of a secret field that is not a reference, or not
// one that its layer may hold (plugins.md 17). Every layer is checked as it is
// read, so that a literal below a reference is found too.
func checkSecret(v *value, path []string, ps *problems) {
	if v.isNull() || v.broken {
		return
	}
	r, ok := reference(v)
	name := joinPath(path)
	switch {
	case !ok && v.kind == kindMap:
		v.broken = true
		ps.invalid(v.origin, name, "%s is secret and not one of its forms", name).hint(secretForms)
	case !ok:
		v.broken = true
		ps.add(fault.ProfileSecretLiteral, v.origin, name, "%s is secret and stands here in clear text", name).hint(secretForms)
	case r.Command != nil && v.origin.Layer != LayerSystem && v.origin.Layer != LayerUser:
		v.broken = true
		ps.invalid(v.origin, name, "%s asks for a command, which only a system or user profile may do", name)
	}
}

// checkTexts reports ${ in values that are no secrets.
func checkTexts(v *value, path []string, ps *problems) {
	switch v.kind {
	case kindText:
		if v.broken || !hasReference(v.text) {
			return
		}
		v.broken = true
		p := ps.invalid(v.origin, joinPath(path), "${ in %s is not accepted: a reference stands alone, and only where a secret belongs", joinPath(path))
		p.hint("write $${ for the two characters themselves")
	case kindList:
		for _, item := range v.items {
			checkTexts(item, path, ps)
		}
	case kindMap:
		for _, e := range v.entries {
			checkTexts(e.value, append(path[:len(path):len(path)], e.key), ps)
		}
	}
}

// checkConfigTexts checks the secrets and references in the config of a row.
// provider is nil while nobody knows it. Keys that a known provider does not
// have are refused elsewhere.
func checkConfigTexts(provider *backend.Provider, config *value, path []string, ps *problems) {
	for _, e := range config.entries {
		at := append(path[:len(path):len(path)], e.key)
		if provider != nil {
			if _, known := provider.Config.Field(e.key); !known {
				continue
			}
		}
		switch {
		case isSecret(provider, e.key) && !unknownPlain(provider, e.value):
			checkSecret(e.value, at, ps)
		case provider == nil:
			checkUnknown(e.value, at, ps)
		default:
			checkTexts(e.value, at, ps)
		}
	}
}

// unknownPlain lets true and false stand under a suspicious name of an unknown
// provider.
func unknownPlain(provider *backend.Provider, v *value) bool {
	return provider == nil && (v.kind == kindBool || v.kind == kindMap && !isReferenceMap(v))
}

func isReferenceMap(v *value) bool {
	return len(v.entries) == 1 && (v.entries[0].key == "file" || v.entries[0].key == "command")
}

// checkUnknown checks a value of a provider that nobody knows: a reference may
// stand anywhere as a whole, and names decide what is secret at every depth.
func checkUnknown(v *value, path []string, ps *problems) {
	switch {
	case v.kind == kindMap && !isReferenceMap(v):
		checkConfigTexts(nil, v, path, ps)
	case v.kind == kindMap:
		checkSecret(v, path, ps)
	case v.kind == kindList:
		for _, item := range v.items {
			checkUnknown(item, path, ps)
		}
	case v.kind == kindText:
		if _, whole := envReference(v.text); !whole {
			checkTexts(v, path, ps)
		}
	}
}
