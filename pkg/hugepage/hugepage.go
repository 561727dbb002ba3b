// Package hugepage lets the heap of a process that lives for milliseconds start
// on one huge page. The initialisers of the linked packages touch some two
// hundred fresh pages, and a first touch is what a short command spends most of
// its time on, above all in a virtual machine (20 µs each); one huge page costs
// as much as ten of them.
//
// A program imports it for its effect. It imports next to nothing, so that it is
// initialised before the packages whose memory it is about (initialisation goes
// by imports, then by import path).
package hugepage
