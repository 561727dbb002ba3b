package profile

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// dumpLine is one line of a dump: YAML, and the comment that trails it.
type dumpLine struct{ text, comment string }

// dumper writes a tree as YAML in block style.
type dumper struct {
	lines   []dumpLine
	shorten func(string) string
}

// Dump writes the composition as YAML with the origin of every value in a
// trailing comment. Fed back as a profile file above the built-in defaults it
// gives the same digest.
func (c *Composition) Dump(w io.Writer) error {
	d := dumper{shorten: c.Places.Shorten}
	for _, e := range c.tree().entries {
		d.entry(e, "", "")
	}
	width := 0
	for _, l := range d.lines {
		if n := utf8.RuneCountInString(l.text); l.comment != "" && n > width && n <= 48 {
			width = n
		}
	}
	var b strings.Builder
	b.WriteString("# profile " + comment(c.Name) + "  digest " + c.Digest() + "\n")
	for _, l := range d.lines {
		b.WriteString(l.text)
		if l.comment != "" {
			b.WriteString(strings.Repeat(" ", max(0, width-utf8.RuneCountInString(l.text))) + "  # " + l.comment)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// entry writes a key and its value. first is what stands before the key on its
// first line instead of the indent: the dash of a list.
func (d *dumper) entry(e entry, indent, first string) {
	if first == "" {
		first = indent
	}
	v, key := e.value, first+scalarText(e.key, false)+":"
	switch {
	case v.kind == kindNull && !v.broken:
	case v.kind == kindMap && !v.secret && len(v.entries) > 0:
		d.lines = append(d.lines, dumpLine{text: key})
		for _, child := range v.entries {
			d.entry(child, indent+"  ", "")
		}
	case v.kind == kindList && len(v.items) > 0 && v.items[0].kind == kindMap:
		d.lines = append(d.lines, dumpLine{text: key})
		for _, item := range v.items {
			dash := indent + "  - "
			for _, child := range item.entries {
				d.entry(child, indent+"    ", dash)
				dash = ""
			}
		}
	default:
		d.lines = append(d.lines, dumpLine{text: key + " " + flowText(v), comment: d.comment(v)})
	}
}

// comment gives the origin of a leaf and the nearest place that it took over.
func (d *dumper) comment(v *value) string {
	text := d.origin(v.origin)
	if len(v.over) > 0 && v.over[0].origin != v.origin {
		text += " (over " + d.origin(v.over[0].origin) + ")"
	}
	if v.note != "" {
		text += " (" + v.note + ")"
	}
	if v.secret {
		text += ", secret"
	}
	return comment(text)
}

func (d *dumper) origin(o Origin) string {
	if o.isFile() {
		o.Source = d.shorten(o.Source)
	}
	return o.String()
}

// comment keeps text from a path on one line.
func comment(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7F || r == 0x85 || r == 0x2028 || r == 0x2029 || r == utf8.RuneError || r == 0xFEFF {
			return '?'
		}
		return r
	}, text)
}

// flowText writes a value on one line.
func flowText(v *value) string {
	switch v.kind {
	case kindList:
		items := make([]string, len(v.items))
		for i, item := range v.items {
			items[i] = inFlow(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case kindMap:
		pairs := make([]string, len(v.entries))
		for i, e := range v.entries {
			pairs[i] = scalarText(e.key, true) + ": " + inFlow(e.value)
		}
		return "{" + strings.Join(pairs, ", ") + "}"
	case kindText:
		return scalarText(v.text, false)
	case kindNull:
		return "null"
	default:
		return v.text
	}
}

func inFlow(v *value) string {
	if v.kind == kindText {
		return scalarText(v.text, true)
	}
	return flowText(v)
}

// scalarText writes text so that it is read back as the same text: plain where
// nothing in it can be misread, else in double quotes.
func scalarText(text string, flow bool) string {
	plain := &value{kind: kindText, text: text}
	if problem := classify(plain); problem != "" || plain.kind != kindText || !isPlain(text, flow) {
		return strconv.QuoteToASCII(text)
	}
	return text
}

func isPlain(text string, flow bool) bool {
	for i, r := range text {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '/', r == '_', r == '.', r == '+':
		case (r == '-' || r == '@' || r == '=' || r == '~') && i > 0:
		case (r == '$' || r == '{' || r == '}') && !flow && strings.HasPrefix(text, "$"):
		default:
			return false
		}
	}
	return text != "" && !strings.HasPrefix(text, "...")
}
