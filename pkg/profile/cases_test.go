package profile

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Cases of plugins.md 40 that have no test of their own number, and why.
func casesElsewhere() map[int]string {
	return map[int]string{
		19: "the patch of an installed plugin: comes with plugins; TestCase020 and TestDumpComments show the same rule with files",
		21: "there is no host-side command wrapper (design.md 4.20)",
		35: "a figure: scripts/bench.sh measures it",
		42: "the process of a plugin's provider: comes with plugins",
	}
}

// Each of the cases 1 to 46 has a test that carries its number, or a reason.
func TestEveryCaseHasATest(t *testing.T) {
	var text strings.Builder
	for _, pattern := range []string{"*_test.go", "../../cmd/profile*_test.go", "../../cmd/testdata/script/profile*.txtar"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(b)
		}
	}
	for n := 1; n <= 46; n++ {
		has := regexp.MustCompile(fmt.Sprintf(`func TestCase%03d[A-Z]`, n)).MatchString(text.String())
		_, elsewhere := casesElsewhere()[n]
		if has == elsewhere {
			t.Errorf("case %d: a test %v, a reason %v", n, has, elsewhere)
		}
	}
}
