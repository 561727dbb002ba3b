package e2btest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/afield-dev/afield/pkg/backend/e2b/wire"
)

// rpcError is a refusal of the RPC layer.
type rpcError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Code + ": " + e.Message }

func fail(code, format string, args ...any) error {
	return &rpcError{code, fmt.Sprintf(format, args...)}
}

// asRPC makes any error one of the RPC layer; system errors are internal.
func asRPC(err error) *rpcError {
	var e *rpcError
	if errors.As(err, &e) {
		return e
	}
	return &rpcError{wire.CodeInternal, err.Error()}
}

var statusOfCode = map[string]int{
	wire.CodeInvalidArgument: 400, wire.CodeUnauthenticated: 401, wire.CodePermissionDenied: 403,
	wire.CodeNotFound: 404, wire.CodeAlreadyExists: 409, wire.CodeFailedPrecondition: 400,
	wire.CodeUnimplemented: 501, wire.CodeInternal: 500, wire.CodeDeadlineExceeded: 504,
	wire.CodeCanceled: 499, wire.CodeUnknown: 500, wire.CodeUnavailable: 503,
}

// call is one RPC under way.
type call struct {
	ctx  context.Context
	box  *Sandbox
	user account
	// keepalive is how often a stream shows that it lives.
	keepalive time.Duration
	// timeout is the deadline that the client asked for; 0 = none.
	timeout time.Duration
}

type unary func(c *call, body []byte) (any, error)
type streaming func(c *call, in *wire.EnvelopeReader, send func(any) error) error

var unaries = map[string]unary{
	wire.MethodProcessList: typed(processList), wire.MethodUpdate: typed(processUpdate),
	wire.MethodSendInput: typed(processInput), wire.MethodSendSignal: typed(processSignal),
	wire.MethodCloseStdin: typed(processCloseStdin),
	wire.MethodStat:       typed(fileStat), wire.MethodMakeDir: typed(fileMakeDir), wire.MethodMove: typed(fileMove),
	wire.MethodListDir: typed(fileList), wire.MethodRemove: typed(fileRemove),
	wire.MethodCreateWatcher: typed(createWatcher), wire.MethodWatcherEvents: typed(watcherEvents),
	wire.MethodRemoveWatcher: typed(removeWatcher),
}

var streamings = map[string]streaming{
	wire.MethodStart: processStart, wire.MethodConnect: processConnect,
	wire.MethodStreamInput: processStreamInput, wire.MethodWatchDir: watchDir,
}

// typed decodes the request of a unary call.
func typed[Q, A any](f func(*call, Q) (A, error)) unary {
	return func(c *call, body []byte) (any, error) {
		var q Q
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, fail(wire.CodeInvalidArgument, "unmarshal message: %s", err)
		}
		return f(c, q)
	}
}

// serveRPC serves Connect over HTTP/1.1 with the JSON codec.
func (b *Sandbox) serveRPC(w http.ResponseWriter, r *http.Request) {
	u, isUnary := unaries[r.URL.Path]
	st, isStream := streamings[r.URL.Path]
	kind := strings.TrimSpace(strings.Split(r.Header.Get("Content-Type"), ";")[0])
	switch {
	case !isUnary && !isStream:
		http.NotFound(w, r)
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case isUnary && kind != "application/json":
		w.Header().Set("Accept-Post", "application/json")
		w.WriteHeader(http.StatusUnsupportedMediaType)
	case isStream && kind != "application/connect+json":
		w.Header().Set("Accept-Post", "application/connect+json")
		w.WriteHeader(http.StatusUnsupportedMediaType)
	case isUnary:
		b.serveUnary(w, r, u)
	default:
		b.serveStream(w, r, st)
	}
}

func (b *Sandbox) newCall(r *http.Request) (*call, error) {
	c := &call{ctx: r.Context(), box: b, keepalive: 90 * time.Second}
	if v := r.Header.Get(wire.HeaderKeepalive); v != "" {
		n, err := strconv.Atoi(v)
		if err == nil && n <= 0 {
			b.crash()
		}
		if err == nil {
			c.keepalive = time.Duration(n) * time.Second
		}
	}
	if n, err := strconv.Atoi(r.Header.Get(wire.HeaderTimeout)); err == nil && n > 0 {
		c.timeout = time.Duration(n) * time.Millisecond
	}
	var ok bool
	if c.user, ok = b.account(userOf(r)); !ok {
		return c, fail(wire.CodeUnauthenticated, "invalid username: '%s'", userOf(r))
	}
	return c, nil
}

func (b *Sandbox) serveUnary(w http.ResponseWriter, r *http.Request, f unary) {
	body, err := plainBody(r, r.Header.Get("Content-Encoding"))
	if err == nil {
		var c *call
		if c, err = b.newCall(r); err == nil {
			var answer any
			if answer, err = f(c, body); err == nil {
				b.writeUnary(w, answer)
				return
			}
		}
	}
	e := asRPC(err)
	reply(w, statusOfCode[e.Code], e)
}

// writeUnary writes an answer; text that is not UTF-8 cannot be one.
func (b *Sandbox) writeUnary(w http.ResponseWriter, answer any) {
	if list, ok := answer.(wire.ListDirResponse); ok {
		for _, e := range list.Entries {
			if !utf8.ValidString(e.Name) {
				reply(w, 500, asRPC(fail(wire.CodeInternal, "marshal message: string field contains invalid UTF-8")))
				return
			}
		}
	}
	reply(w, http.StatusOK, answer)
}

func plainBody(r *http.Request, encoding string) ([]byte, error) {
	if encoding != "gzip" {
		return io.ReadAll(r.Body)
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// serveStream answers with messages and an end message. A stream of input is
// answered while it may still be under way, which costs its connection: the
// server of package http must not look for the rest of the request in it. Any
// other request is read first.
func (b *Sandbox) serveStream(w http.ResponseWriter, r *http.Request, f streaming) {
	if r.URL.Path == wire.MethodStreamInput {
		http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Connection", "close")
	} else {
		body, _ := io.ReadAll(r.Body) // one cut short is an incomplete envelope
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	c, err := b.newCall(r)
	w.Header().Set("Content-Type", "application/connect+json")
	w.WriteHeader(http.StatusOK)
	flusher := w.(http.Flusher)
	flusher.Flush()
	send := func(msg any) error {
		payload, err := json.Marshal(msg)
		if err != nil {
			return err
		}
		if _, err := w.Write(wire.AppendEnvelope(nil, 0, payload)); err != nil {
			return err
		}
		flusher.Flush()
		return nil
	}
	if err == nil {
		err = f(c, &wire.EnvelopeReader{R: r.Body}, send)
	}
	if c.ctx.Err() != nil {
		panic(http.ErrAbortHandler)
	}
	end := []byte("{}")
	if err != nil {
		end, _ = json.Marshal(map[string]*rpcError{"error": asRPC(err)})
	}
	w.Write(wire.AppendEnvelope(nil, wire.FlagEnd, end))
}

// readOne decodes the one message of a server stream's request.
func readOne(in *wire.EnvelopeReader, v any) error {
	_, payload, err := in.Read()
	if err != nil {
		return fail(wire.CodeInvalidArgument, "protocol error: incomplete envelope: %s", err)
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return fail(wire.CodeInvalidArgument, "unmarshal message: %s", err)
	}
	return nil
}
