package keeper

import (
	"strings"

	"github.com/hinshun/vt10x"

	"github.com/afield-dev/afield/pkg/provider"
)

// Screen is what a terminal shows.
type Screen struct {
	ID     string   `json:"id"`
	Rows   int      `json:"rows"`
	Cols   int      `json:"cols"`
	Lines  []string `json:"lines"` // one for each row, blanks at the end left out
	Cursor Cursor   `json:"cursor"`
	Title  string   `json:"title"`
	// Alternate: a full-screen program has the screen.
	Alternate bool `json:"alternate"`
	// Lossy: output from before the first look is gone, so what was drawn then
	// and never again is not here.
	Lossy bool `json:"lossy"`
}

// Cursor is a position on a screen, counted from 0.
type Cursor struct {
	Row     int  `json:"row"`
	Col     int  `json:"col"`
	Visible bool `json:"visible"`
}

// screen follows the output of a terminal with an emulator, from the first look
// on. Its owner holds a lock.
type screen struct {
	term  vt10x.Terminal
	rest  []byte // a character that has not come whole
	lossy bool
}

func newScreen(rows, cols int) *screen { return &screen{term: vt10x.New(vt10x.WithSize(cols, rows))} }

func (s *screen) write(p []byte) {
	all := append(s.rest, p...)
	n, _ := s.term.Write(all)
	s.rest = append([]byte(nil), all[min(n, len(all)):]...)
}

func (s *screen) resize(rows, cols int) { s.term.Resize(cols, rows) }

func (s *screen) look() Screen {
	cols, rows := s.term.Size()
	cursor := s.term.Cursor()
	out := Screen{
		Rows: rows, Cols: cols, Title: s.term.Title(), Alternate: s.term.Mode()&vt10x.ModeAltScreen != 0, Lossy: s.lossy,
		Cursor: Cursor{Row: cursor.Y, Col: cursor.X, Visible: s.term.CursorVisible()},
	}
	for y := range rows {
		var b strings.Builder
		for x := range cols {
			c := s.term.Cell(x, y).Char
			if c == 0 {
				c = ' '
			}
			b.WriteRune(c)
		}
		out.Lines = append(out.Lines, strings.TrimRight(b.String(), " "))
	}
	return out
}

// heldScreen gives the rendered screen. The first look plays what is kept of the
// output.
func heldScreen(_ *provider.Stream, h *held, _ heldParams) (any, error) {
	if _, err := h.terminal(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.screen == nil {
		chunk, err := h.out[1].ReadFrom(0)
		if err != nil {
			return nil, err
		}
		h.screen = newScreen(h.rows, h.cols)
		h.screen.lossy = chunk.Lossy
		h.screen.write(chunk.Bytes)
	}
	s := h.screen.look()
	s.ID = h.id
	return s, nil
}
