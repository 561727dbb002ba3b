package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// Client talks to the daemon of one sandbox.
type Client struct {
	HTTP   *http.Client
	Base   string      // URL without a slash at the end
	Header http.Header // sent with every request
	// User is whose home relative paths start at, who owns new files, and whom
	// programs run as; "" = the sandbox's default user.
	User string
}

// maxErrorBody bounds what is read of a refusal.
const maxErrorBody = 64 << 10

// Call makes a unary call. resp may be nil.
func (c *Client) Call(ctx context.Context, method string, req, resp any) error {
	body, err := json.Marshal(req)
	if err != nil {
		return err
	}
	hr, err := c.request(ctx, http.MethodPost, method, bytes.NewReader(body), "application/json")
	if err != nil {
		return err
	}
	return answer(c.HTTP, hr, method, resp)
}

// request makes a request with the headers of every request.
func (c *Client) request(ctx context.Context, verb, path string, body io.Reader, contentType string) (*http.Request, error) {
	hr, err := http.NewRequestWithContext(ctx, verb, c.Base+path, body)
	if err != nil {
		return nil, err
	}
	for k, v := range c.Header {
		hr.Header[k] = v
	}
	if contentType != "" {
		hr.Header.Set("Content-Type", contentType)
	}
	if c.User != "" {
		hr.SetBasicAuth(c.User, "")
	}
	hr.Header.Set("Connect-Protocol-Version", "1")
	return hr, nil
}

// answer sends a request and decodes the answer's JSON into v, which may be
// nil.
func answer(client *http.Client, hr *http.Request, method string, v any) error {
	res, err := client.Do(hr)
	if err != nil {
		return err
	}
	defer drain(res.Body)
	if err := refusal(res, method); err != nil {
		return err
	}
	if v == nil {
		return nil
	}
	if err := json.NewDecoder(res.Body).Decode(v); err != nil {
		return fmt.Errorf("%s: unreadable answer: %w", method, err)
	}
	return nil
}

// refusal gives the *Error of an answer that is not a success.
func refusal(res *http.Response, method string) error {
	if res.StatusCode < 300 {
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	return newError(method, res.StatusCode, body, res.Header.Get("Retry-After"))
}

// drain reads a short rest, so that the connection can be used again.
func drain(body io.ReadCloser) {
	io.CopyN(io.Discard, body, maxErrorBody)
	body.Close()
}

// Open makes a call whose answer is a stream. keepalive asks for a sign of life
// every so many seconds; it must be positive: the daemon does not survive
// another value. The stream lives as long as ctx and must be closed.
func (c *Client) Open(ctx context.Context, method string, req any, keepalive int) (*Stream, error) {
	if keepalive <= 0 {
		return nil, fmt.Errorf("%s: the keepalive interval must be at least 1 second, not %d", method, keepalive)
	}
	payload, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	body := AppendEnvelope(make([]byte, 0, len(payload)+5), 0, payload)
	hr, err := c.request(ctx, http.MethodPost, method, bytes.NewReader(body), "application/connect+json")
	if err != nil {
		return nil, err
	}
	hr.Header.Set(HeaderKeepalive, strconv.Itoa(keepalive))
	return c.stream(hr, method)
}

func (c *Client) stream(hr *http.Request, method string) (*Stream, error) {
	res, err := c.HTTP.Do(hr)
	if err != nil {
		return nil, err
	}
	if err := refusal(res, method); err != nil {
		res.Body.Close()
		return nil, err
	}
	return &Stream{method: method, body: res.Body, r: EnvelopeReader{R: res.Body}}, nil
}

// Send makes a call whose request is a stream of messages: write is called with
// a function that sends one. The call ends when write returns and the server
// has answered, or with the first error.
func (c *Client) Send(ctx context.Context, method string, write func(send func(msg any) error) error) error {
	pr, pw := io.Pipe()
	hr, err := c.request(ctx, http.MethodPost, method, pr, "application/connect+json")
	if err != nil {
		return err
	}
	go func() {
		pw.CloseWithError(write(func(msg any) error {
			payload, err := json.Marshal(msg)
			if err != nil {
				return err
			}
			_, err = pw.Write(AppendEnvelope(nil, 0, payload))
			return err
		}))
	}()
	defer pr.Close()
	s, err := c.stream(hr, method)
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		if err := s.Next(nil); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}
