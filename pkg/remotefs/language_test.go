package remotefs

import "testing"

func TestLanguage(t *testing.T) { // remotefs.md 15
	for name, want := range map[string]string{
		"a.ts": "ts", "a.MTS": "ts", "x/y.tsx": "tsx", "m.cjs": "js", "c.jsonc": "json", "h.h": "c", "p.cxx": "cpp",
		"p.cc": "cpp", "k.kt": "kotlin", "s.zsh": "sh", "y.yml": "yaml", "r.markdown": "markdown", "i.htm": "html",
		"main.go": "go", "a.tar.lua": "lua", ".go": "", "Makefile": "", "a.": "", "d.go/Makefile": "", "a.unknown": "",
	} {
		if got := Language(name); got != want {
			t.Errorf("Language(%q) = %q, want %q", name, got, want)
		}
	}
}
