package profile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/afield-dev/afield/pkg/fault"
)

// Problem is one thing that is wrong with a profile. Message never holds a
// value that was written, only names and places.
type Problem struct {
	Code    fault.Code
	Origin  Origin
	Path    string // of the value, such as "world.config.host"; "" = none
	Message string
	Hint    string
}

// Line gives the problem as `FILE:LINE:COL: CODE message (hint)`.
func (p Problem) Line() string {
	line := fmt.Sprintf("%s: %s %s", p.Origin.place(), p.Code, p.Message)
	if p.Hint != "" {
		line += " (" + p.Hint + ")"
	}
	return line
}

// problems collects what is wrong, so that one run shows all of it.
type problems struct{ list []Problem }

func (ps *problems) add(code fault.Code, at Origin, path, format string, args ...any) *Problem {
	ps.list = append(ps.list, Problem{Code: code, Origin: at, Path: path, Message: fmt.Sprintf(format, args...)})
	return &ps.list[len(ps.list)-1]
}

func (ps *problems) invalid(at Origin, path, format string, args ...any) *Problem {
	return ps.add(fault.ProfileInvalid, at, path, format, args...)
}

func (p *Problem) hint(format string, args ...any) {
	p.Hint = fmt.Sprintf(format, args...)
}

// sorted gives the problems by layer, source and place.
func (ps *problems) sorted() []Problem {
	slices.SortStableFunc(ps.list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Origin.Layer, b.Origin.Layer), cmp.Compare(a.Origin.Source, b.Origin.Source),
			cmp.Compare(a.Origin.Line, b.Origin.Line), cmp.Compare(a.Origin.Column, b.Origin.Column))
	})
	return ps.list
}

// asError gives the first problem as the error of a command, and says how many
// more there are.
func asError(list []Problem) error {
	if len(list) == 0 {
		return nil
	}
	first := list[0]
	err := fault.New(first.Code, "profile", first.Path, "%s: %s", first.Origin.place(), first.Message)
	if first.Origin.Layer == LayerDefault {
		err.Message = first.Message
	}
	if first.Origin.isFile() {
		err.Path = first.Origin.Source
	}
	err.Hint = first.Hint
	if n := len(list) - 1; n > 0 {
		err.Message += fmt.Sprintf(" (and %d more, see afield profile validate)", n)
	}
	return err
}
