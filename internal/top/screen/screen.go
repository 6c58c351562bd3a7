// SPDX-License-Identifier: Apache-2.0

// Package screen shows the page of package top on a terminal (Show) and passes on keys,
// until the user quits. It is the only package that knows terminals, so that top can be
// tested without one.
package screen

import (
	"context"
	"fmt"
	"time"

	"github.com/gdamore/tcell/v3"

	"gompi/internal/top"
)

// Show shows a view on a terminal; nil is the terminal of the process. It returns nil when
// the user quits or ctx is done, and the error that comes with the end of the samples. The
// terminal is restored in all cases. Show owns the view meanwhile.
func Show(ctx context.Context, tty tcell.Tty, v *top.View, samples <-chan top.Sample, ended <-chan error) error {
	s, err := tcell.NewTerminfoScreenFromTty(tty)
	if err == nil {
		err = s.Init()
	}
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer s.Fini()
	s.SetTitle(v.Title)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		draw(s, v)
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case sample := <-samples:
			v.Add(sample)
		case ev := <-s.EventQ():
			switch ev := ev.(type) {
			case nil:
				return nil
			case *tcell.EventResize:
				s.Sync()
			case *tcell.EventKey:
				if ev.Pressed() && v.Act(name(ev)) {
					return nil
				}
			}
		case <-tick.C: // an answer may have become late
		}
	}
}

// name returns a view's name for a key.
func name(ev *tcell.EventKey) string {
	switch ev.Key() {
	case tcell.KeyRune:
		return ev.Str()
	case tcell.KeyCtrlC:
		return "Ctrl-C"
	}
	return ev.Name()
}

// looks returns the look of a style. Without colours (NO_COLOR) it uses bold, reverse or
// dim.
func looks(s top.Style) tcell.Style {
	plain := tcell.StyleDefault
	switch s {
	case top.Strong:
		return plain.Bold(true)
	case top.Bar:
		return plain.Reverse(true)
	case top.New:
		return plain.Foreground(tcell.PaletteColor(2))
	case top.Moving:
		return plain.Bold(true).Foreground(tcell.PaletteColor(3))
	case top.Faint:
		return plain.Dim(true)
	}
	return plain
}

func draw(s tcell.Screen, v *top.View) {
	width, height := s.Size()
	s.Clear()
	for y, l := range v.Lines(width, height, time.Now()) {
		style := looks(l.Style)
		if l.Style == top.Bar {
			s.FillArea(0, y, width, 1, ' ', style)
		}
		s.PutStrStyled(0, y, l.Text, style)
	}
	s.Show()
}
