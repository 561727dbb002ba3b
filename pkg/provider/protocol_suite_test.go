package provider_test

import (
	"context"
	"io"
	"testing"

	"github.com/afield-dev/afield/pkg/backend"
	"github.com/afield-dev/afield/pkg/provider"
	"github.com/afield-dev/afield/pkg/provider/providertest"
)

// Case 114 and its neighbours hold for our own serving side.
func TestProtocolSuite(t *testing.T) {
	dir := t.TempDir()
	err := providertest.Check(context.Background(), providertest.Backend{
		Open: provider.OpenParams{World: "w"},
		Dial: func(context.Context) (io.ReadWriteCloser, error) {
			near, far := socketPair(t)
			s := &provider.Server{
				Hello: provider.Hello{Plugin: "p", Version: "1.0.0", Providers: []provider.HelloProvider{{Name: "p", Services: []string{"fs", "exec"}, Level: "contract"}}},
				Open: func(ctx context.Context, p provider.OpenParams) (backend.World, provider.Opened, error) {
					return openLocal(ctx, dir)
				},
			}
			served := provider.NewConn(far, provider.Options{Hello: s.Hello, Serve: s.Handler()})
			t.Cleanup(func() { served.Close() })
			return near, nil
		},
	}, func(v providertest.Verdict) {
		if v.Reason != "" {
			t.Errorf("%s %s: %s", v.Case.ID, v.Case.Name, v.Reason)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
