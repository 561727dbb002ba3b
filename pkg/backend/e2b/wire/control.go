package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Control talks to the control plane.
type Control struct {
	HTTP *http.Client
	Base string // URL without a slash at the end
	// Key is sent as X-API-Key.
	Key string
	// UserAgent identifies the client.
	UserAgent string

	// old is set once the server has shown that it lacks the newest routes.
	old atomic.Bool
}

// NewSandbox is the request for a sandbox.
type NewSandbox struct {
	TemplateID string            `json:"templateID"`
	Timeout    int               `json:"timeout,omitempty"` // seconds
	Secure     bool              `json:"secure,omitempty"`  // of the older route
	AutoPause  bool              `json:"autoPause,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	EnvVars    map[string]string `json:"envVars,omitempty"`
}

// Sandbox is the answer of create and connect: how to reach it.
type Sandbox struct {
	TemplateID         string  `json:"templateID"`
	SandboxID          string  `json:"sandboxID"`
	ClientID           string  `json:"clientID"` // no longer used, still required by older clients
	Alias              string  `json:"alias,omitempty"`
	EnvdVersion        string  `json:"envdVersion"`
	EnvdAccessToken    string  `json:"envdAccessToken,omitempty"`
	TrafficAccessToken *string `json:"trafficAccessToken,omitempty"`
	Domain             *string `json:"domain,omitempty"`
}

// SandboxDetail is the answer of get and an entry of list.
type SandboxDetail struct {
	Sandbox
	StartedAt  time.Time         `json:"startedAt"`
	EndAt      time.Time         `json:"endAt"`
	CPUCount   int               `json:"cpuCount"`
	MemoryMB   int               `json:"memoryMB"`
	DiskSizeMB int               `json:"diskSizeMB"`
	State      string            `json:"state"` // running or paused
	Metadata   map[string]string `json:"metadata,omitempty"`
	Lifecycle  *Lifecycle        `json:"lifecycle,omitempty"`
}

// Lifecycle says what happens at the end of a sandbox's life.
type Lifecycle struct {
	OnTimeout  string `json:"onTimeout"` // kill or pause
	AutoResume bool   `json:"autoResume"`
}

// Snapshot is the answer of snapshots.
type Snapshot struct {
	SnapshotID string   `json:"snapshotID"`
	Names      []string `json:"names,omitempty"`
}

// ListQuery selects sandboxes.
type ListQuery struct {
	States   []string
	Metadata map[string]string
	Limit    int // of one page; 0 = the server's
	Next     string
}

// Create makes a sandbox that only its token opens. Servers without the newest
// route are asked once more by the older one.
func (c *Control) Create(ctx context.Context, req NewSandbox) (Sandbox, error) {
	var s Sandbox
	if !c.old.Load() {
		req.Secure = false
		_, err := c.do(ctx, http.MethodPost, "/v2/sandboxes", nil, req, &s)
		if !lacksRoute(err) {
			return s, err
		}
	}
	req.Secure = true
	_, err := c.do(ctx, http.MethodPost, "/sandboxes", nil, req, &s)
	if err == nil {
		c.old.Store(true)
	}
	return s, err
}

// Connect gives the address of a sandbox, resuming it if it is paused, and lets
// it live for at least timeout seconds.
func (c *Control) Connect(ctx context.Context, id string, timeout int) (Sandbox, error) {
	body := map[string]int{"timeout": timeout}
	var s Sandbox
	if !c.old.Load() {
		_, err := c.do(ctx, http.MethodPost, "/v2"+sandboxPath(id, "connect"), nil, body, &s)
		if !lacksRoute(err) {
			return s, err
		}
	}
	_, err := c.do(ctx, http.MethodPost, sandboxPath(id, "connect"), nil, body, &s)
	if err == nil {
		c.old.Store(true)
	}
	return s, err
}

// lacksRoute reports whether the server may not know the route. It answers in
// the same way when it does not know the sandbox or the template; the older
// route then says so again.
func lacksRoute(err error) bool {
	status := StatusOf(err)
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}

// List gives one page and the token of the next, "" after the last.
func (c *Control) List(ctx context.Context, q ListQuery) ([]SandboxDetail, string, error) {
	v := url.Values{}
	if len(q.States) > 0 {
		v.Set("state", strings.Join(q.States, ","))
	}
	if len(q.Metadata) > 0 {
		v.Set("metadata", metadataQuery(q.Metadata))
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Next != "" {
		v.Set("nextToken", q.Next)
	}
	var all []SandboxDetail
	head, err := c.do(ctx, http.MethodGet, "/v2/sandboxes", v, nil, &all)
	if lacksRoute(err) {
		v = url.Values{"metadata": v["metadata"]}
		head, err = c.do(ctx, http.MethodGet, "/sandboxes", v, nil, &all)
	}
	return all, head.Get(HeaderNextToken), err
}

// metadataQuery is a query inside a query whose parts are escaped on their own
// first: the server unescapes the whole before it looks for & and =.
func metadataQuery(m map[string]string) string {
	v := url.Values{}
	for k, s := range m {
		v.Set(url.QueryEscape(k), url.QueryEscape(s))
	}
	return v.Encode()
}

// Get gives what is known of a sandbox.
func (c *Control) Get(ctx context.Context, id string) (SandboxDetail, error) {
	var d SandboxDetail
	_, err := c.do(ctx, http.MethodGet, sandboxPath(id, ""), nil, nil, &d)
	return d, err
}

// Kill ends and deletes a sandbox, also a paused one.
func (c *Control) Kill(ctx context.Context, id string) error {
	_, err := c.do(ctx, http.MethodDelete, sandboxPath(id, ""), nil, nil, nil)
	return err
}

// SetTimeout lets a sandbox live for so many seconds from now, also fewer than
// before.
func (c *Control) SetTimeout(ctx context.Context, id string, seconds int) error {
	_, err := c.do(ctx, http.MethodPost, sandboxPath(id, "timeout"), nil, map[string]int{"timeout": seconds}, nil)
	return err
}

// Pause stops a sandbox and keeps its state.
func (c *Control) Pause(ctx context.Context, id string) error {
	_, err := c.do(ctx, http.MethodPost, sandboxPath(id, "pause"), nil, struct{}{}, nil)
	return err
}

// TakeSnapshot stores the state of a sandbox; name "" = none.
func (c *Control) TakeSnapshot(ctx context.Context, id, name string) (Snapshot, error) {
	body := map[string]string{}
	if name != "" {
		body["name"] = name
	}
	var s Snapshot
	_, err := c.do(ctx, http.MethodPost, sandboxPath(id, "snapshots"), nil, body, &s)
	return s, err
}

func sandboxPath(id, verb string) string {
	path := "/sandboxes/" + url.PathEscape(id)
	if verb != "" {
		path += "/" + verb
	}
	return path
}

// do makes one request. body and v may be nil. The header is never nil.
func (c *Control) do(ctx context.Context, verb, path string, query url.Values, body, v any) (http.Header, error) {
	target := c.Base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return http.Header{}, err
		}
		content = bytes.NewReader(b)
	}
	hr, err := http.NewRequestWithContext(ctx, verb, target, content)
	if err != nil {
		return http.Header{}, err
	}
	if content != nil {
		hr.Header.Set("Content-Type", "application/json")
	}
	hr.Header.Set(HeaderAPIKey, c.Key)
	hr.Header.Set("User-Agent", c.UserAgent)
	res, err := c.HTTP.Do(hr)
	if err != nil {
		return http.Header{}, err
	}
	defer drain(res.Body)
	method := verb + " " + path
	if err := refusal(res, method); err != nil {
		return res.Header, err
	}
	if v == nil {
		return res.Header, nil
	}
	return res.Header, json.NewDecoder(res.Body).Decode(v)
}
