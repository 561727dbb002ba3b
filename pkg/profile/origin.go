package profile

import (
	"fmt"
	"strconv"
)

// Layer is the rank of a source of values; a higher one wins (plugins.md 15).
type Layer int

// The layers, lowest first.
const (
	LayerDefault Layer = iota
	LayerPlugin
	LayerSystem
	LayerUser
	LayerProject
	LayerEnv
	LayerFile
	LayerFlag
)

// String gives the word that stands before an origin.
func (l Layer) String() string {
	switch l {
	case LayerPlugin:
		return "plugin"
	case LayerSystem:
		return "system"
	case LayerUser:
		return "user"
	case LayerProject:
		return "project"
	case LayerEnv:
		return "env"
	case LayerFile:
		return "file"
	case LayerFlag:
		return "flag"
	default:
		return "default"
	}
}

// Origin says where a value was written. Line and Column count from 1; 0 is
// unknown. A Source is a path for files, a name for variables and plugins, and
// the number in argument order for flags.
type Origin struct {
	Layer  Layer
	Source string
	Line   int
	Column int
}

// String gives the origin as explanations and dumps show it, such as
// "user /home/a/.config/afield/profiles/ci.yaml:4".
func (o Origin) String() string {
	switch {
	case o.Layer == LayerDefault:
		return "default"
	case o.Line == 0 || o.Layer == LayerFlag || o.Layer == LayerPlugin:
		return o.Layer.String() + " " + o.Source
	default:
		return o.Layer.String() + " " + o.Source + ":" + strconv.Itoa(o.Line)
	}
}

// isFile reports whether Source is the path of a file.
func (o Origin) isFile() bool {
	return o.Layer == LayerSystem || o.Layer == LayerUser || o.Layer == LayerProject || o.Layer == LayerFile
}

// place gives the origin as the beginning of a problem's line.
func (o Origin) place() string {
	switch {
	case o.Layer == LayerDefault:
		return "profile"
	case o.isFile() && o.Line > 0:
		return fmt.Sprintf("%s:%d:%d", o.Source, o.Line, o.Column)
	case o.isFile():
		return o.Source
	case o.Layer == LayerEnv && o.Line > 0:
		return fmt.Sprintf("env %s:%d", o.Source, o.Line)
	default:
		return o.String()
	}
}

// at gives the origin of another place in the same source.
func (o Origin) at(line, column int) Origin {
	o.Line, o.Column = line, column
	return o
}
