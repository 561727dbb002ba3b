package npm

import (
	"encoding/json"
	"strings"
)

// parse reads the format of .npmrc: key = value lines, comments behind ; or #,
// quotes, ${NAME} of the environment. Sections and lists are not of interest and
// left out.
func parse(text string, env func(string) (string, bool)) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(text, "\uFEFF")) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == ';' || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			break
		}
		key, value, found := strings.Cut(line, "=")
		if !found {
			value = "true"
		}
		key = expand(unquote(strings.TrimSpace(key)), env)
		if strings.HasSuffix(key, "[]") {
			continue
		}
		out[key] = expand(unquote(strings.TrimSpace(value)), env)
	}
	return out
}

// unquote takes quotes away, or a comment behind a plain value.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		var text string
		if json.Unmarshal([]byte(s), &text) == nil {
			return text
		}
		return s
	}
	if len(s) >= 2 && s[0] == '\'' && s[len(s)-1] == '\'' {
		return s[1 : len(s)-1]
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte(`\;#`, s[i+1]) >= 0:
			i++
			b.WriteByte(s[i])
		case s[i] == ';' || s[i] == '#':
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// expand puts the values of variables in: ${NAME} of one that is not there
// stays as it is, ${NAME?} becomes nothing, \${NAME} is taken as it stands.
func expand(s string, env func(string) (string, bool)) string {
	var b strings.Builder
	for {
		start := strings.Index(s, "${")
		end := strings.IndexByte(s[max(start, 0):], '}')
		if start < 0 || end < 0 {
			b.WriteString(s)
			return b.String()
		}
		end += start
		before, name, whole := s[:start], s[start+2:end], s[start:end+1]
		slashes := len(before) - len(strings.TrimRight(before, `\`))
		b.WriteString(before[:len(before)-(slashes+1)/2])
		name, optional := strings.CutSuffix(name, "?")
		switch value, ok := env(name); {
		case slashes%2 == 1:
			b.WriteString(whole)
		case ok:
			b.WriteString(value)
		case !optional:
			b.WriteString(whole)
		}
		s = s[end+1:]
	}
}
