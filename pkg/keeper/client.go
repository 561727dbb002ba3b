package keeper

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/afield-dev/afield/pkg/fault"
	"github.com/afield-dev/afield/pkg/provider"
)

// patience is how long a keeper may take to answer at all. One that is stuck
// costs a command no more. Who asks about the keeper itself has more.
const (
	patience     = 2 * time.Second
	longPatience = 10 * time.Second
)

// Client is a connection to a keeper. Its methods may run at the same time. The
// caller closes it.
type Client struct {
	conn  *provider.Conn
	hello *provider.Hello
}

// Dial connects to the keeper of a setup that has been identified. Its error
// says why there is none to talk to; nothing has been asked of it by then.
func (p Place) Dial(ctx context.Context, s Setup) (*Client, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return dial(ctx, s.Socket, patience)
}

func dial(ctx context.Context, socket string, patience time.Duration) (*Client, error) {
	d := net.Dialer{Timeout: patience}
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	client, err := greet(ctx, c.(*net.UnixConn), patience)
	if err != nil {
		c.Close()
		return nil, err
	}
	return client, nil
}

// greet hears who is there.
func greet(ctx context.Context, c *net.UnixConn, patience time.Duration) (*Client, error) {
	if !OwnPeer(c) {
		return nil, fault.New(fault.FSPermissionDenied, "keeper", "", "the keeper's socket belongs to another user")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	end, _ := ctx.Deadline()
	c.SetReadDeadline(end)
	r := bufio.NewReaderSize(c, provider.MaxData+1024)
	if _, err := provider.AwaitStart(r, nonce); err != nil {
		return nil, err
	}
	c.SetReadDeadline(time.Time{})
	conn := provider.NewConn(buffered{c, r}, provider.Options{Hello: provider.Hello{Name: "afield"}})
	hello, err := conn.Greeted(ctx)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &Client{conn: conn, hello: hello}, nil
}

// buffered is a connection that is read through a buffer.
type buffered struct {
	net.Conn
	r io.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.r.Read(p) }

// Close ends the connection, and what the caller has started through it.
func (c *Client) Close() error { return c.conn.Close() }

// World opens the keeper's world in the caller's directory. Closing it does not
// close the connection.
func (c *Client) World(ctx context.Context, caller Caller) (*provider.World, error) {
	config := map[string]any{}
	if caller.Environ != nil {
		config["environ"], config["hostDir"] = caller.Environ, caller.HostDir
	}
	return provider.OpenWorld(ctx, c.conn, provider.OpenParams{
		World: worldID, Provider: c.hello.Providers[0].Name, Config: config, Cwd: provider.Raw(caller.Cwd),
	}, "")
}

// worldID names the one world of a connection.
const worldID = "w"

// call makes a call without content.
func (c *Client) call(ctx context.Context, method string, params, result any) error {
	s, err := c.conn.Call(method, params)
	if err != nil {
		return err
	}
	return s.Result(ctx, result)
}

// Status is what a keeper says of itself.
type Status struct {
	ID        string    `json:"id"`
	PID       int       `json:"pid"`
	Backend   string    `json:"backend"`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"startedAt"`
	IdleMs    int64     `json:"idleMs"`
	Callers   int       `json:"callers"` // beside the one that asks
	Held      int       `json:"held"`
	Connected bool      `json:"connected"` // a world is open
	Socket    string    `json:"socket"`
	Log       string    `json:"log"`
}

// Status asks a keeper how it is.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	err := c.call(ctx, "keeper.status", struct{}{}, &s)
	return s, err
}

// Stop asks a keeper to end, with all that it holds, and waits until it has.
func (c *Client) Stop(ctx context.Context) error {
	if err := c.call(ctx, "keeper.stop", struct{}{}, nil); err != nil {
		return err
	}
	select {
	case <-c.conn.Closed():
		return nil
	case <-ctx.Done():
		return fault.Aborted(ctx, fault.FSAborted, "stop", "")
	}
}

// Keeper is a keeper of this place, of whatever build.
type Keeper struct {
	ID     string
	Socket string
	client *Client
	err    error
}

// List connects to all keepers of this place, whatever their build. One that
// does not answer is listed as well; the caller closes each.
func (p Place) List(ctx context.Context) ([]*Keeper, error) {
	sockets, err := p.sockets()
	if err != nil {
		return nil, err
	}
	var list []*Keeper
	for _, path := range sockets {
		name := strings.TrimSuffix(path[strings.LastIndexByte(path, '-')+1:], ".sock")
		k := &Keeper{ID: name, Socket: path}
		if k.client, k.err = dial(ctx, path, longPatience); k.client == nil && !p.alive(path) {
			continue
		}
		list = append(list, k)
	}
	return list, nil
}

// alive reports whether a keeper holds the lock of a socket. What one that was
// killed has left behind is removed.
func (p Place) alive(socket string) bool {
	f, err := lock(socket)
	if err != nil {
		return errors.Is(err, errHeld)
	}
	os.Remove(socket)
	os.Remove(lockPath(socket))
	f.Close()
	return false
}

// Status is the keeper's own word, or the error of one that does not answer.
func (k *Keeper) Status(ctx context.Context) (Status, error) {
	if k.client == nil {
		return Status{ID: k.ID, PID: k.pid(), Socket: k.Socket}, k.err
	}
	return k.client.Status(ctx)
}

// Stop ends the keeper. One that does not answer is killed.
func (k *Keeper) Stop(ctx context.Context) error {
	if k.client != nil {
		return k.client.Stop(ctx)
	}
	pid := k.pid()
	if pid <= 1 {
		return fault.Wrap(k.err, fault.BackendUnreachable, "stop", k.Socket, "the keeper %s does not answer and does not tell its process", k.ID)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fault.Wrap(err, fault.FSIOError, "stop", k.Socket, "cannot kill the keeper %s, process %d: %s", k.ID, pid, err)
	}
	return nil
}

// pid is what the keeper has written into its lock. It holds the lock, so the
// number is still its own.
func (k *Keeper) pid() int {
	b, _ := os.ReadFile(lockPath(k.Socket))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return pid
}

// Close ends the connection to the keeper.
func (k *Keeper) Close() error {
	if k.client == nil {
		return nil
	}
	return k.client.Close()
}
