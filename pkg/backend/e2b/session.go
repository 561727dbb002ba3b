package e2b

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
	"github.com/afield-dev/afield/pkg/fault"
)

// keepalive is how often, in seconds, a stream shows that it lives: well below
// the idle limits along the way.
const keepalive = 30

// probeTimeout bounds the look at a connection that broke.
const probeTimeout = 5 * time.Second

// minVersion is the oldest daemon that is used: input can be ended since then.
const minVersion = "0.5.2"

// session is the way to one sandbox: its address, kept between commands, and
// the clients of both planes. Methods may run at the same time.
type session struct {
	cfg     config
	http    *http.Client
	control *wire.Control
	state   state
	log     *slog.Logger
	// stateKey is where the record is kept; "" = nowhere.
	stateKey string
	// made: the sandbox was made by afield, which so may make its directory.
	made bool

	// looks bounds how many programs are looked at together.
	looks chan struct{}

	mu     sync.Mutex
	rec    *record      // nil until the sandbox is known
	client *wire.Client // of rec
	asked  bool         // the control plane was asked for the address in this process
	askErr error        // what it said when it was asked again
	ready  chan struct{}
	setErr error
}

// newSession makes a session without any request.
func newSession(cfg config, st state, log *slog.Logger, trace func(string, int, int64)) *session {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true,
		MaxIdleConns:          128,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ResponseHeaderTimeout: cfg.timeout,
		WriteBufferSize:       64 << 10,
		ReadBufferSize:        64 << 10,
	}
	client := &http.Client{Transport: &traced{next: transport, report: trace}}
	return &session{
		cfg: cfg, http: client, state: st, log: log, looks: make(chan struct{}, 4),
		control: &wire.Control{HTTP: client, Base: cfg.apiURL, Key: cfg.key, UserAgent: "afield"},
	}
}

// traced reports each request.
type traced struct {
	next   *http.Transport
	report func(step string, roundTrips int, bytes int64)
}

func (t *traced) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.report != nil {
		t.report(r.Method+" "+r.URL.Path, 1, max(r.ContentLength, 0))
	}
	return t.next.RoundTrip(r)
}

// CloseIdleConnections lets go of the connections that wait.
func (t *traced) CloseIdleConnections() { t.next.CloseIdleConnections() }

// use calls f with a client of the sandbox. If the sandbox turns out to be
// elsewhere, paused, or to have another token, its address is asked for once
// and f is called again: such an answer comes from in front of the daemon, so
// nothing has happened yet.
func (s *session) use(ctx context.Context, f func(*wire.Client) error) error {
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	err = f(c)
	if !movedAway(err) {
		return err
	}
	next, again := s.readdress(ctx, c)
	if again != nil {
		return again
	}
	if next == nil {
		return err
	}
	return f(next)
}

// movedAway reports whether an answer means that the address is out of date.
func movedAway(err error) bool {
	var e *wire.Error
	return errors.As(err, &e) && e.Edge && (e.Status == http.StatusBadGateway || e.Status == http.StatusUnauthorized)
}

// dial gives the client, asking the control plane only for a sandbox of which
// there is no record.
func (s *session) dial(ctx context.Context) (*wire.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	if s.rec == nil {
		if err := s.ask(ctx, s.cfg.sandbox); err != nil {
			return nil, err
		}
	}
	return s.open()
}

// readdress asks the control plane again, once in the life of the session. It
// gives nil when that was done already.
func (s *session) readdress(ctx context.Context, old *wire.Client) (*wire.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != old {
		return s.client, nil
	}
	if s.asked {
		return nil, s.askErr
	}
	if s.askErr = s.ask(ctx, s.rec.ID); s.askErr != nil {
		return nil, s.askErr
	}
	return s.open()
}

// ask connects to a sandbox, which resumes it if it is paused and lets it live
// for a while. The caller holds s.mu.
func (s *session) ask(ctx context.Context, id string) error {
	if s.cfg.debug {
		s.keep(&record{ID: debugSandbox, Version: "99.99.99"})
		return nil
	}
	s.asked = true
	b, err := s.control.Connect(ctx, id, seconds(s.cfg.life))
	if err != nil {
		if wire.StatusOf(err) == http.StatusNotFound && s.stateKey != "" {
			s.state.drop(s.stateKey)
		}
		return controlError(err, id)
	}
	rec := recordOf(b, s.cfg.life)
	if s.rec != nil && s.rec.ID == rec.ID {
		rec.Setup = s.rec.Setup
	}
	s.keep(rec)
	return nil
}

// keep makes rec the address, also for later commands. The caller holds s.mu.
func (s *session) keep(rec *record) {
	s.rec, s.client = rec, nil
	if s.stateKey == "" {
		return
	}
	if err := s.state.save(s.stateKey, rec); err != nil {
		s.log.Warn(err.Error())
	}
}

func recordOf(b wire.Sandbox, life time.Duration) *record {
	rec := &record{ID: b.SandboxID, Version: b.EnvdVersion, Token: b.EnvdAccessToken, EndAt: time.Now().Add(life).UTC()}
	if b.Domain != nil {
		rec.Domain = *b.Domain
	}
	return rec
}

// seconds rounds up: a life is never shorter than asked for.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// open makes the client of the record. The caller holds s.mu.
func (s *session) open() (*wire.Client, error) {
	if older(s.rec.Version, minVersion) {
		e := fault.New(fault.BackendUnsupported, "", "", "the daemon of sandbox %s is envd %s, which cannot end the input of a program; afield needs %s or later", s.rec.ID, s.rec.Version, minVersion)
		e.Backend = name
		return nil, e.WithHint("build the template again: new sandboxes get the present daemon")
	}
	h := http.Header{}
	h.Set("User-Agent", "afield")
	h.Set(wire.HeaderSandboxID, s.rec.ID)
	h.Set(wire.HeaderSandboxPort, strconv.Itoa(wire.Port))
	if s.rec.Token != "" {
		h.Set(wire.HeaderAccessToken, s.rec.Token)
	}
	s.client = &wire.Client{HTTP: s.http, Base: s.cfg.address(s.rec), Header: h, User: s.cfg.user}
	return s.client, nil
}

// address is the URL of a sandbox's daemon (e2b.md 4.1).
func (c config) address(rec *record) string {
	domain := first(rec.Domain, c.domain)
	switch {
	case c.sandboxURL != "":
		return c.sandboxURL
	case slices.Contains([]string{"e2b.app", "e2b.dev", "e2b.pro", "e2b-staging.dev"}, domain):
		return "https://sandbox." + domain
	}
	return "https://" + strconv.Itoa(wire.Port) + "-" + rec.ID + "." + domain
}

// older compares dotted numbers; what is no number counts as new.
func older(have, want string) bool {
	h, w := strings.Split(have, "."), strings.Split(want, ".")
	for i := range w {
		if i >= len(h) {
			return true
		}
		a, errA := strconv.Atoi(h[i])
		b, errB := strconv.Atoi(w[i])
		if errA != nil || errB != nil {
			return false
		}
		if a != b {
			return a < b
		}
	}
	return false
}

// controlError gives the error of a control-plane call about a sandbox.
func controlError(err error, id string) error {
	var e *wire.Error
	if !errors.As(err, &e) {
		if f := unreachable(err); f != nil {
			return f
		}
		return world(err, fault.BackendUnreachable, "e2b does not answer: %s", innermost(err)).WithRetry(fault.RetryUnknown)
	}
	switch e.Status {
	case http.StatusNotFound:
		return world(err, fault.BackendWorldGone, "there is no e2b sandbox %s", id).
			WithHint("`afield sandbox list` shows what there is; `afield sandbox create` makes a new one")
	case http.StatusBadRequest:
		return world(err, fault.Usage, "e2b refused the request for sandbox %s: %s", id, detail(e))
	}
	if f := refused(err); f != nil {
		return f
	}
	return world(err, fault.BackendProtocol, "e2b failed: %s", detail(e)).WithRetry(fault.RetryUnknown)
}

// diagnose looks at the sandbox after a connection broke: the error says so if
// the sandbox is gone, and is unchanged otherwise.
func (s *session) diagnose(err error) error {
	if err == nil || fault.CodeOf(err) != "" {
		return err
	}
	if f := refused(err); f != nil {
		return f
	}
	var e *wire.Error
	if errors.As(err, &e) {
		return err
	}
	s.mu.Lock()
	c := s.client
	s.mu.Unlock()
	if c == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	if wire.StatusOf(c.Health(ctx)) == http.StatusBadGateway {
		return gone(err)
	}
	return err
}

// id gives the sandbox's id, "" while it is not known.
func (s *session) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rec == nil {
		return s.cfg.sandbox
	}
	return s.rec.ID
}
