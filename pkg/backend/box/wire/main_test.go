package wire_test

import (
	"context"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/afield-dev/afield/pkg/backend/box/boxtest"
	"github.com/afield-dev/afield/pkg/backend/box/wire"
)

func TestMain(m *testing.M) {
	boxtest.Main()
	goleak.VerifyTestMain(m)
}

// stand gives a server and a client of it. Waits between tries are skipped and
// collected.
type stand struct {
	*boxtest.Server
	*wire.Client
	t     *testing.T
	waits []time.Duration
}

func newStand(t *testing.T, opts boxtest.Options) *stand {
	t.Helper()
	if mode, err := boxtest.Isolation(); err != nil {
		if os.Getenv("AFIELD_TEST_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skip("SKIPPED, boxes cannot be isolated here: ", err)
	} else {
		t.Logf("boxes are isolated by: %s", mode)
	}
	s := &stand{t: t}
	var err error
	if s.Server, err = boxtest.New(opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Server.Close)
	s.Client, err = wire.New(wire.Config{BaseURL: s.URL(), Key: s.Key(), Sleep: func(ctx context.Context, d time.Duration) error {
		s.waits = append(s.waits, d)
		return ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Client.Close)
	return s
}

// box makes a box.
func (s *stand) box() string {
	s.t.Helper()
	b, err := s.Create(s.t.Context(), wire.CreateFields{Ephemeral: true, TTL: 600})
	if err != nil {
		s.t.Fatal(err)
	}
	return b.ID
}
