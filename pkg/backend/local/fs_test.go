package local

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/remotefs"
)

// A missing file keeps its key when its parents come into being, also below a
// linked ancestor (case 16), and a dangling link has its own (cases 20, 22).
func TestCanonOfWhatIsMissing(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"ld": "rd", "d": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "rd"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"ld/n1/n2/f": "rd/n1/n2/f", "d": "d", "d/child": "d/child", "x": "x",
	} {
		got, err := canon(filepath.Join(dir, path))
		if err != nil || got != filepath.Join(dir, want) {
			t.Errorf("canon(%q) = %q, %v; want %q", path, got, err, want)
		}
	}
}

func TestReadTextOfAMissingFile(t *testing.T) { // case 87
	fs := remotefs.New(NewDriver(t.TempDir()), remotefs.Options{})
	_, err := fs.ReadText(context.Background(), remotefs.AtPath("none", ""))
	if !fault.Is(err, fault.FSNotFound) {
		t.Fatalf("error %v", err)
	}
}
