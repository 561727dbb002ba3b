package box

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
)

func TestMain(m *testing.M) {
	boxtest.Main()
	goleak.VerifyTestMain(m)
}

// newServer starts a stand-in, or skips loudly where boxes cannot be isolated.
func newServer(t testing.TB, opts boxtest.Options) *boxtest.Server {
	t.Helper()
	mode, err := boxtest.Isolation()
	if err != nil {
		if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skip("SKIPPED, boxes cannot be isolated here: ", err)
	}
	t.Logf("boxes are isolated by: %s", mode)
	s, err := boxtest.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// request makes a row for a server; extra keys come on top.
func request(t testing.TB, s *boxtest.Server, extra map[string]any) backend.OpenRequest {
	t.Helper()
	row := map[string]any{}
	for _, f := range schema() {
		if f.Default != nil && !f.Secret {
			row[f.Key] = f.Default
		}
	}
	row["baseUrl"] = s.URL()
	for k, v := range extra {
		row[k] = v
	}
	return backend.OpenRequest{
		Config: row, Secret: func(context.Context, string) (string, error) { return s.Key(), nil },
		HostDir: t.TempDir(), StateDir: t.TempDir(), NewFileMode: -1,
		Log: slog.New(slog.DiscardHandler),
	}
}

// open opens a world and closes it at the end of the test.
func open(t testing.TB, s *boxtest.Server, extra map[string]any) *World {
	t.Helper()
	w, err := Open(t.Context(), request(t, s, extra))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Errorf("close the world: %v", err)
		}
	})
	return w
}
