package npm

import "strings"

// maxName bounds the name of a package, in bytes.
const maxName = 214

// ParseSpec reads NAME[@SPEC], scoped or not. ok is false where it has another
// form. A SPEC that is not given is "".
func ParseSpec(text string) (name, spec string, ok bool) {
	name = text
	if i := strings.LastIndexByte(text, '@'); i > 0 {
		name, spec = text[:i], text[i+1:]
		if spec == "" {
			return "", "", false
		}
	}
	return name, spec, ValidName(name) && validSpec(spec)
}

// ValidName reports whether a name is one that npm accepts for new packages.
func ValidName(name string) bool {
	if len(name) > maxName {
		return false
	}
	if scope, rest, scoped := strings.Cut(name, "/"); scoped {
		return strings.HasPrefix(scope, "@") && validPart(scope[1:]) && validPart(rest)
	}
	return validPart(name) && name != "node_modules" && name != "favicon.ico"
}

func validPart(s string) bool {
	return s != "" && s[0] != '.' && s[0] != '_' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-._~") == ""
}

// validSpec holds that a spec is a version, a tag or a range, and no address.
func validSpec(spec string) bool {
	for _, r := range spec {
		if r <= ' ' && r != ' ' || r == ':' || r == '/' || r == '\\' || r > '~' {
			return false
		}
	}
	return len(spec) <= 256
}
