package fstest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// elsewhere are the numbers that no case of the suite has, with the test that
// has them: they need a hook inside of a backend, a scripted driver, a process
// to kill, or nothing of a backend at all.
var elsewhere = map[int]struct{ dir, test string }{
	80:  {"../../backend/local", "TestChildRemovedBeforeItIsProbed"},
	92:  {"..", "TestPiecesOfAStream"},
	93:  {"..", "TestPiecesOfAStream"},
	97:  {"..", "TestPiecesOfAStream"},
	102: {"..", "TestPiecesOfAStream"},
	105: {"..", "TestStoppingEarlyCancelsOnce"},
	106: {"..", "TestPiecesOfAStream"},
	107: {"../../backend/local", "TestFileReplacedBetweenStatAndOpen"},
	108: {"../../backend/local", "TestFileReplacedBetweenStatAndOpen"},
	109: {"../../backend/local", "TestFileReplacedBetweenStatAndOpen"},
	120: {"../../backend/local", "TestFileGrownBetweenStatAndOpen"},
	121: {"..", "TestLimitOfBytes"},
	168: {"../../backend/local", "TestStagingThatIsThereAlready"},
	169: {"../../backend/local", "TestStagingCannotBeRemovedAfterwards"},
	170: {"../../backend/local", "TestStagingCannotBeRemovedAfterAFailure"},
	171: {"../../backend/local", "TestCreateWithoutHardLinks"},
	180: {"../../backend/local", "TestEntryGoneWhenARefusalIsInspected"},
	181: {"../../backend/local", "TestLinkFailsOtherwise"},
	187: {"..", "TestUnknownOutcome"},
	238: {"../../backend/local", "TestKilledWhileWriting"},
	292: {"../../diff", "TestChangeInTheMiddleShowsThreeLinesAround"},
	293: {"../../diff", "TestEqualTextsAndMissingFinalLineFeed"},
	294: {"../../diff", "TestNearChangesShareAHunk"},
}

// notHere are the numbers that only something above or one backend can have.
var notHere = map[int]string{
	30:  "quotes a request of one service: its backend tests the step with the same part",
	148: "quotes a request of one service: its backend tests the step with the same part",
	185: "quotes a request of one service: its backend tests the step with the same part",
	186: "quotes a request of one service: its backend tests the step with the same part",
	290: "the command line refuses it before there is a request: cmd/testdata/script/fs_edit.txtar",
}

// Every number of the specification up to the search has a case, a test
// elsewhere, or a reason why it is not here, and only one of them.
func TestEveryCaseIsSomewhere(t *testing.T) {
	have := map[int]bool{}
	for _, c := range Cases() {
		have[c.Num] = true
		if c.Name == "" || c.run == nil {
			t.Errorf("case %d has no name or does nothing", c.Num)
		}
	}
	for n := 1; n <= 294; n++ {
		where, other := elsewhere[n]
		switch reason := notHere[n]; {
		case !have[n] && !other && reason == "":
			t.Errorf("case %d is nowhere", n)
		case have[n] && other, have[n] && reason != "", other && reason != "":
			t.Errorf("case %d is in two places", n)
		case other && !hasTest(t, where.dir, where.test):
			t.Errorf("case %d: %s has no %s", n, where.dir, where.test)
		}
	}
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return regexp.MustCompile(`(?m)^func ` + name + `\(t \*testing\.T\)`).Match(b)
	})
}

// Names of cases are sentences that differ, so that a failure says which it is.
func TestNamesDiffer(t *testing.T) {
	seen := map[string]int{}
	for _, c := range Cases() {
		if n, ok := seen[c.Name]; ok && n == c.Num {
			t.Errorf("case %d has two parts called %q", n, c.Name)
		}
		seen[c.Name] = c.Num
	}
}
