// Package providertest is the suite of the protocol itself (plugins.md 31 to
// 33): what any provider must do with frames, whatever world it serves. The
// suites of the contracts come on top.
//
// A case opens a connection of its own and leans on no other case. The numbers
// are those of plugins.md 40, I, with a letter.
package providertest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/afield-dev/afield/pkg/provider"
)

// Backend is the provider under test.
type Backend struct {
	// Dial starts the provider and gives its stream behind the start line.
	// Closing it ends the provider.
	Dial func(ctx context.Context) (io.ReadWriteCloser, error)
	// Open are the parameters with which its world opens.
	Open provider.OpenParams
}

// Case is one row of the suite.
type Case struct {
	ID   string
	Name string // a sentence
	run  func(p *peer) error
}

// Verdict is what Check says of a case; Reason is empty where it passed.
type Verdict struct {
	Case     Case
	Reason   string
	Duration time.Duration
}

// limit is how long a case waits for the provider.
const limit = 30 * time.Second

// Check runs the suite, one case after the other, and reports each.
func Check(ctx context.Context, b Backend, report func(Verdict)) error {
	for _, c := range Cases() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		v, start := Verdict{Case: c}, time.Now()
		if err := attempt(ctx, b, c); err != nil {
			v.Reason = err.Error()
		}
		v.Duration = time.Since(start)
		report(v)
	}
	return nil
}

func attempt(ctx context.Context, b Backend, c Case) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := b.Dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	p := &peer{conn: conn, open: b.Open}
	if err := p.greet(); err != nil {
		return err
	}
	err = c.run(p)
	if ctx.Err() != nil {
		return fmt.Errorf("the provider did not answer within %s", limit)
	}
	return err
}

// Cases gives all cases.
func Cases() []Case {
	open := func(f func(p *peer) error) func(p *peer) error {
		return func(p *peer) error {
			if err := p.openWorld(); err != nil {
				return err
			}
			return f(p)
		}
	}
	ends := func(f provider.Frame) func(p *peer) error {
		return func(p *peer) error { return p.sendAndLose(f) }
	}
	return []Case{
		{"P-describe", "describe gives the HELLO again, without a world", describes},
		{"P-ping", "PING is answered by PONG with its bytes", pongs},
		{"P-unknown", "an unknown method answers UNSUPPORTED, and the connection lives", unknownMethod},
		{"P-no-world", "a call about a world that is not open fails", noWorld},
		{"P-114a", "a frame longer than 1 MiB ends the connection", oversized},
		{"P-114b", "an unknown critical frame ends the connection", ends(provider.Frame{Kind: 31})},
		{"P-114c", "an unknown uncritical frame is ignored", ignored},
		{"P-114d", "a stream that is used again ends the connection", reused},
		{"P-114e", "a call on an even stream ends the connection", ends(provider.Frame{Stream: 2, Kind: provider.KindCall, Body: []byte(`{"m":"describe"}`)})},
		{"P-open", "world.open says where the world is, and CANCEL ends it", open(cancelWorld)},
		{"P-behind", "a call right behind world.open waits for it", callBehind},
		{"P-list-credit", "content waits for credit, and a call beside it is answered", open(stuckConsumer)},
	}
}

// peer is the caller's side, made of raw frames.
type peer struct {
	conn  io.ReadWriteCloser
	open  provider.OpenParams
	next  uint32
	hello provider.Hello
}

// greet exchanges HELLO. Our window is the smallest, so that content stops soon.
func (p *peer) greet() error {
	p.next = 1
	body, _ := json.Marshal(provider.Hello{Protocol: provider.Protocol, Name: "conformance", Version: "1", Window: provider.MinWindow, MaxStreams: 16})
	if err := p.send(provider.Frame{Kind: provider.KindHello, Body: body}); err != nil {
		return err
	}
	f, err := provider.ReadFrame(p.conn)
	if err != nil {
		return err
	}
	if f.Kind != provider.KindHello || f.Stream != 0 || json.Unmarshal(f.Body, &p.hello) != nil || p.hello.Protocol != provider.Protocol {
		return fmt.Errorf("the first frame is no HELLO of protocol %d", provider.Protocol)
	}
	return nil
}

func (p *peer) send(f provider.Frame) error {
	_, err := p.conn.Write(provider.AppendFrame(nil, f))
	return err
}

// call sends CALL and gives its stream.
func (p *peer) call(method string, params any) (uint32, error) {
	id := p.next
	p.next += 2
	body, err := json.Marshal(map[string]any{"m": method, "p": params})
	if err != nil {
		return 0, err
	}
	return id, p.send(provider.Frame{Stream: id, Kind: provider.KindCall, Body: body})
}

// await reads until a frame of a kind comes on a stream.
func (p *peer) await(stream uint32, kind provider.Kind) (provider.Frame, error) {
	for {
		f, err := provider.ReadFrame(p.conn)
		if err != nil {
			return f, fmt.Errorf("the connection ended before the answer: %w", err)
		}
		if f.Stream == stream && f.Kind == kind {
			return f, nil
		}
		if f.Stream == stream && f.Kind == provider.KindEnd {
			return f, fmt.Errorf("the call ended with %s", f.Body)
		}
	}
}

// errorOf gives the code of a call's error, "" = it has a result.
func errorOf(f provider.Frame) string {
	var end struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	json.Unmarshal(f.Body, &end)
	return end.Error.Code
}

// alive holds that the connection still answers.
func (p *peer) alive() error {
	id, err := p.call("describe", struct{}{})
	if err != nil {
		return err
	}
	f, err := p.await(id, provider.KindEnd)
	if err == nil && errorOf(f) != "" {
		err = fmt.Errorf("describe fails: %s", f.Body)
	}
	return err
}

// lost holds that the provider ends the connection. GOAWAY may come first.
func (p *peer) lost() error {
	for {
		f, err := provider.ReadFrame(p.conn)
		if errors.Is(err, provider.ErrProtocol) {
			return err
		}
		if err != nil {
			return nil
		}
		if f.Kind == provider.KindEnd && errorOf(f) == "" {
			return fmt.Errorf("the provider went on: %s", f.Body)
		}
	}
}

func (p *peer) sendAndLose(f provider.Frame) error {
	if err := p.send(f); err != nil {
		return err
	}
	p.call("describe", struct{}{})
	return p.lost()
}

func describes(p *peer) error {
	id, err := p.call("describe", struct{}{})
	if err != nil {
		return err
	}
	f, err := p.await(id, provider.KindEnd)
	if err != nil {
		return err
	}
	var again provider.Hello
	if json.Unmarshal(f.Body, &again) != nil || again.Plugin != p.hello.Plugin || again.Version != p.hello.Version || len(again.Providers) != len(p.hello.Providers) {
		return fmt.Errorf("describe gives %s", f.Body)
	}
	return nil
}

func pongs(p *peer) error {
	want := []byte("8 bytes!")
	if err := p.send(provider.Frame{Kind: provider.KindPing, Body: want}); err != nil {
		return err
	}
	f, err := p.await(0, provider.KindPong)
	if err == nil && !bytes.Equal(f.Body, want) {
		err = fmt.Errorf("PONG holds %q", f.Body)
	}
	return err
}

func unknownMethod(p *peer) error {
	id, err := p.call("no.such.method", map[string]string{"world": "w"})
	if err != nil {
		return err
	}
	f, err := p.await(id, provider.KindEnd)
	if err != nil {
		return err
	}
	if code := errorOf(f); code != "UNSUPPORTED" && code != "world-gone" {
		return fmt.Errorf("the answer is %s", f.Body)
	}
	return p.alive()
}

func noWorld(p *peer) error {
	id, err := p.call("fs.resolve", map[string]string{"world": "nowhere", "path": "/"})
	if err != nil {
		return err
	}
	f, err := p.await(id, provider.KindEnd)
	if err != nil {
		return err
	}
	if errorOf(f) == "" {
		return fmt.Errorf("a world that is not open answers %s", f.Body)
	}
	return p.alive()
}

func oversized(p *peer) error {
	header := binary.BigEndian.AppendUint32(nil, provider.MaxBody+1)
	header = append(header, 0, 0, 0, 0, byte(provider.KindLog), 0, 0, 0)
	if _, err := p.conn.Write(header); err != nil {
		return err
	}
	return p.lost()
}

func ignored(p *peer) error {
	if err := p.send(provider.Frame{Kind: 200, Body: []byte("from the future")}); err != nil {
		return err
	}
	return p.alive()
}

func reused(p *peer) error {
	if err := p.alive(); err != nil {
		return err
	}
	return p.sendAndLose(provider.Frame{Stream: 1, Kind: provider.KindCall, Body: []byte(`{"m":"describe"}`)})
}

// openWorld opens the world and waits until it is there.
func (p *peer) openWorld() error {
	id, err := p.call("world.open", p.open)
	if err != nil {
		return err
	}
	f, err := p.await(id, provider.KindEvent)
	if err != nil {
		return err
	}
	var opened struct {
		Name string `json:"e"`
		provider.Opened
	}
	if json.Unmarshal(f.Body, &opened) != nil || opened.Name != "opened" || opened.Cwd == "" || opened.PathStyle != "posix" {
		return fmt.Errorf("the world says %s", f.Body)
	}
	p.open.Cwd = opened.Cwd
	return nil
}

func cancelWorld(p *peer) error {
	if err := p.send(provider.Frame{Stream: 1, Kind: provider.KindCancel}); err != nil {
		return err
	}
	_, err := p.await(1, provider.KindEnd)
	return err
}

func callBehind(p *peer) error {
	if _, err := p.call("world.open", p.open); err != nil {
		return err
	}
	id, err := p.call("world.ping", map[string]string{"world": p.open.World})
	if err != nil {
		return err
	}
	f, err := p.await(id, provider.KindEnd)
	if err == nil && errorOf(f) != "" {
		err = fmt.Errorf("the call behind it fails: %s", f.Body)
	}
	return err
}

// stuckConsumer takes nothing of a program's endless output: no more than the
// window may come, and other calls go on.
func stuckConsumer(p *peer) error {
	if !slices.ContainsFunc(p.hello.Providers, func(o provider.HelloProvider) bool { return slices.Contains(o.Services, "exec") }) {
		return nil
	}
	method := "exec.spawn"
	if p.hello.Providers[0].Level == "driver" {
		method = "execd.start"
	}
	id, err := p.call(method, map[string]any{"world": p.open.World, "argv": []string{"sh", "-c", "while :; do echo 0123456789012345678901234567890123456789; done"},
		"cwd": p.open.Cwd, "stdin": "ignore", "stdout": "pipe", "stderr": "pipe", "graceMs": 100})
	if err != nil {
		return err
	}
	total := 0
	for total < provider.MinWindow {
		f, err := p.await(id, provider.KindData)
		if err != nil {
			return err
		}
		total += len(f.Body)
	}
	if err := p.alive(); err != nil {
		return err
	}
	if total > provider.MinWindow {
		return fmt.Errorf("%d bytes came on a window of %d", total, provider.MinWindow)
	}
	if err := p.send(provider.Frame{Stream: id, Kind: provider.KindCancel}); err != nil {
		return err
	}
	_, err = p.await(id, provider.KindEnd)
	return err
}
