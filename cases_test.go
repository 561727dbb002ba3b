package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Each case of profiles, plugins and the protocol has a test that names its
// number: in the test's name or a comment. 128 is a figure, measured by
// scripts/bench.sh protocol.
func TestEveryPluginCaseIsNamed(t *testing.T) {
	named := map[int]bool{128: true}
	for _, pattern := range []string{
		"pkg/profile/*_test.go", "pkg/plugin/*_test.go", "pkg/provider/*_test.go", "pkg/provider/providertest/*.go",
		"pkg/backend/external/*_test.go", "cmd/profile_test.go", "cmd/examples_test.go", "cmd/testdata/script/p*.txtar",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, %v", pattern, err)
		}
		for _, path := range files {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			collectCases(named, string(content))
		}
	}
	for n := 1; n <= 139; n++ {
		if n >= 129 && n <= 138 { // of the keeper, the far-side agent and the bridge
			continue
		}
		if !named[n] {
			t.Errorf("no test names case %d", n)
		}
	}
}

// collectCases finds "case 7", "Cases 7, 8 and 10 to 12" and TestCase7….
func collectCases(named map[int]bool, text string) {
	text = strings.NewReplacer("\n// ", " ", "\n# ", " ", "\n\t// ", " ").Replace(text)
	lists := regexp.MustCompile(`[Cc]ases? ?(\d+(?:(?:, | and | to |And)\d+)*)`)
	span := regexp.MustCompile(`(\d+) to (\d+)`)
	number := regexp.MustCompile(`\d+`)
	for _, m := range lists.FindAllStringSubmatch(text, -1) {
		for _, s := range span.FindAllStringSubmatch(m[1], -1) {
			from, _ := strconv.Atoi(s[1])
			to, _ := strconv.Atoi(s[2])
			for n := from; n <= to; n++ {
				named[n] = true
			}
		}
		for _, s := range number.FindAllString(m[1], -1) {
			n, _ := strconv.Atoi(s)
			named[n] = true
		}
	}
}
