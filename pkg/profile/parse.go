package profile

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Bounds of one document (plugins.md 14).
const (
	maxDocumentBytes = 1 << 20
	maxDepth         = 32
	maxNodes         = 50000
)

// parse reads one YAML document by walking its nodes, so that every value has
// its place and nothing is decoded that the format does not promise. The answer
// is nil when there is nothing to work with; the problems say why. path is where
// the document stands in a profile: nil for a whole one.
func parse(content []byte, at Origin, path []string, ps *problems) *value {
	if len(content) > maxDocumentBytes {
		ps.invalid(at, "", "the document is larger than 1 MiB")
		return nil
	}
	content = bytes.TrimPrefix(content, []byte("\xEF\xBB\xBF"))
	if !checkCharacters(content, at, ps) {
		return nil
	}
	root := decodeDocument(content, at, ps)
	if root == nil {
		return nil
	}
	w := walker{at: at, problems: ps}
	return w.walk(root, path, 1)
}

// checkCharacters finds NUL and what is not UTF-8 by place, which the YAML
// reader cannot tell.
func checkCharacters(content []byte, at Origin, ps *problems) bool {
	line, column := 1, 1
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			ps.invalid(at.at(line, column), "", "the document is not UTF-8")
			return false
		case r == 0:
			ps.invalid(at.at(line, column), "", "NUL is not accepted")
			return false
		case r == '\n':
			line, column = line+1, 0
		}
		i += size
		column++
	}
	return true
}

// decodeDocument gives the root node of the only document.
func decodeDocument(content []byte, at Origin, ps *problems) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(content))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		ps.invalid(at.at(1, 1), "", "the document is empty").hint("the smallest profile is: version: 1")
		return nil
	}
	if err != nil {
		addSyntax(err, at, ps)
		return nil
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		ps.invalid(at.at(second.Line, second.Column), "", "a second document is not accepted")
		return nil
	case !errors.Is(err, io.EOF):
		addSyntax(err, at, ps)
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		ps.invalid(at.at(1, 1), "", "the document is empty")
		return nil
	}
	return doc.Content[0]
}

// addSyntax reports an error of the YAML reader, which knows at most a line and
// tells it in its text only.
func addSyntax(err error, at Origin, ps *problems) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		number, after, found := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil && found {
			line, text = n, after
		}
	}
	ps.invalid(at.at(line, 1), "", "not YAML: %s", text)
}

// walker turns nodes into values.
type walker struct {
	at       Origin
	problems *problems
	nodes    int
	stopped  bool
}

func (w *walker) place(n *yaml.Node) Origin { return w.at.at(n.Line, n.Column) }

// reject reports a problem and gives a value that is not looked at again.
func (w *walker) reject(n *yaml.Node, path []string, format string, args ...any) *value {
	w.problems.invalid(w.place(n), joinPath(path), format, args...)
	return &value{origin: w.place(n), broken: true}
}

func (w *walker) walk(n *yaml.Node, path []string, depth int) *value {
	w.nodes++
	switch {
	case w.stopped:
		return &value{origin: w.place(n), broken: true}
	case w.nodes > maxNodes:
		w.stopped = true
		return w.reject(n, path, "more than %d nodes are not accepted", maxNodes)
	case n.Kind == yaml.AliasNode:
		return w.reject(n, path, "an alias is not accepted: *%s", n.Value)
	case n.Anchor != "":
		return w.reject(n, path, "an anchor is not accepted: &%s", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		return w.reject(n, path, "a tag is not accepted: %s", n.Tag)
	case n.Kind != yaml.ScalarNode && depth > maxDepth:
		return w.reject(n, path, "nested deeper than %d", maxDepth)
	case n.Kind == yaml.MappingNode:
		return w.walkMap(n, path, depth)
	case n.Kind == yaml.SequenceNode:
		return w.walkList(n, path, depth)
	default:
		return w.walkScalar(n, path)
	}
}

func (w *walker) walkList(n *yaml.Node, path []string, depth int) *value {
	v := &value{kind: kindList, origin: w.place(n)}
	for i, item := range n.Content {
		v.items = append(v.items, w.walk(item, append(slices.Clone(path), strconv.Itoa(i)), depth+1))
	}
	return v
}

func (w *walker) walkMap(n *yaml.Node, path []string, depth int) *value {
	v := &value{kind: kindMap, origin: w.place(n)}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, ok := w.key(n.Content[i], path)
		if !ok {
			continue
		}
		if line, twice := seen[key]; twice {
			w.reject(n.Content[i], path, "the key %s stands here and in line %d", quoteKey(key), line)
			continue
		}
		seen[key] = n.Content[i].Line
		item := w.walk(n.Content[i+1], append(slices.Clone(path), key), depth+1)
		v.entries = append(v.entries, entry{key, w.place(n.Content[i]), item})
	}
	return v
}

// key gives the text of a key node.
func (w *walker) key(n *yaml.Node, path []string) (string, bool) {
	w.nodes++
	plain := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	switch {
	case n.Kind == yaml.AliasNode:
		w.reject(n, path, "an alias is not accepted: *%s", n.Value)
	case n.Anchor != "":
		w.reject(n, path, "an anchor is not accepted: &%s", n.Anchor)
	case n.Style&yaml.TaggedStyle != 0:
		w.reject(n, path, "a tag is not accepted: %s", n.Tag)
	case n.Kind != yaml.ScalarNode:
		w.reject(n, path, "a key must be text")
	case plain && n.Value == "<<":
		w.reject(n, path, "a merge key is not accepted: <<")
	case strings.ContainsRune(n.Value, 0):
		w.reject(n, path, "NUL is not accepted")
	default:
		return n.Value, true
	}
	return "", false
}

func (w *walker) walkScalar(n *yaml.Node, path []string) *value {
	v := &value{kind: kindText, text: n.Value, origin: w.place(n)}
	switch {
	case strings.ContainsRune(n.Value, 0):
		return w.reject(n, path, "NUL is not accepted")
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return v
	case len(path) == 1 && path[0] == "keep" && n.Value == "off":
		return v
	}
	if problem := classify(v); problem != "" {
		return w.reject(n, path, "%s", problem)
	}
	return v
}

// classify gives a plain scalar its kind. Only null, true, false and decimal
// numbers are more than text; the words and spellings on which YAML readers
// disagree are refused.
func classify(v *value) (problem string) {
	switch strings.ToLower(v.text) {
	case "", "~", "null":
		v.kind = kindNull
	case "yes", "no", "on", "off":
		return v.text + " is not accepted without quotes: write true or false, or quote the word"
	case "true", "false":
		if v.text != strings.ToLower(v.text) {
			return v.text + " is not accepted without quotes: write true or false, or quote the word"
		}
		v.kind = kindBool
	default:
		return classifyNumber(v)
	}
	return ""
}

func classifyNumber(v *value) (problem string) {
	digits := strings.TrimPrefix(v.text, "-")
	whole, rest := digits, ""
	if i := strings.IndexAny(digits, ".eE"); i >= 0 {
		whole, rest = digits[:i], digits[i:]
	}
	if whole == "" || strings.Trim(whole, "0123456789") != "" {
		return ""
	}
	if len(whole) > 1 && whole[0] == '0' && (rest == "" || isFraction(rest)) {
		return "a number with a leading zero is not accepted: leave the zero out, or put it in quotes"
	}
	if rest == "" {
		n, err := strconv.ParseInt(v.text, 10, 64)
		if err != nil {
			return "the number is too large"
		}
		v.kind, v.integer, v.text = kindInt, n, strconv.FormatInt(n, 10)
		return ""
	}
	if !isFraction(rest) {
		return ""
	}
	f, err := strconv.ParseFloat(v.text, 64)
	if err != nil {
		return "the number is too large"
	}
	v.kind, v.number, v.text = kindNumber, f, formatNumber(f)
	return ""
}

// isFraction reports whether s, which begins with a dot or an e, is the rest of
// a decimal number: .5, .5e3, e-3.
func isFraction(s string) bool {
	if rest, ok := strings.CutPrefix(s, "."); ok {
		n := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if n == 0 {
			return false
		}
		if s = rest[n:]; s == "" {
			return true
		}
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	exponent := strings.TrimLeft(s[1:], "+-")
	return len(s[1:])-len(exponent) <= 1 && exponent != "" && strings.Trim(exponent, "0123456789") == ""
}

// joinPath writes a path as --set and explain take it.
func joinPath(path []string) string {
	quoted := make([]string, len(path))
	for i, segment := range path {
		quoted[i] = quoteKey(segment)
	}
	return strings.Join(quoted, ".")
}

// quoteKey quotes a key that could be misread in a path or a message.
func quoteKey(key string) string {
	for _, r := range key {
		if r == '.' || r == '"' || r == '=' || r <= ' ' || r == 0x7F || r == utf8.RuneError {
			return strconv.Quote(key)
		}
	}
	if key == "" {
		return `""`
	}
	return key
}
