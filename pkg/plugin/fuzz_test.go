package plugin

import (
	"strings"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/plugin/npm"
)

// Whatever a source says: parsing it ends, and what is accepted as a package
// has a name that npm accepts, and reads the same again.
func FuzzSource(f *testing.F) {
	for _, seed := range []string{
		"npm:@s/p@^1", "p@1.2.3 || >=2 <3", "github:o/r@v1#x.tgz", "https://h/x.tgz", "file:///a%20b.tgz", "./x", "npm:../x", "x@npm:y@1", "@/x", "a@@1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSource(text, "/d")
		if err != nil {
			if fault.CodeOf(err) != fault.PluginSourceInvalid {
				t.Errorf("%v", err)
			}
			return
		}
		again, err := ParseSource(s.Text, "/other")
		if err != nil || again != s {
			t.Errorf("%q is %+v and again %+v: %v", text, s, again, err)
		}
		if s.Kind == KindNPM {
			if name := strings.TrimPrefix(s.Name, "npm:"); !npm.ValidName(name) || strings.Contains("/"+name+"/", "/../") {
				t.Errorf("%q has the name %q", text, name)
			}
			r, err := ParseRange(s.Spec)
			if err == nil {
				r.Holds("1.2.3")
			}
		}
	})
}
