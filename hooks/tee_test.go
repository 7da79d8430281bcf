package hooks_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/lease"
	"github.com/eldest-io/eldest/observe"
)

// filled sets every hook of a struct of hooks to one that records its call.
func filled[H any](note func(field string)) H {
	var h H
	fill(reflect.ValueOf(&h).Elem(), note)
	return h
}

func fill(v reflect.Value, note func(string)) {
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name
		if v.Type().PkgPath() != "" {
			name = v.Type().PkgPath() + " " + v.Type().Field(i).Name
		}
		if field.Kind() == reflect.Struct {
			fill(field, note)
			continue
		}
		field.Set(reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value { note(name); return nil }))
	}
}

// fire calls each hook once, with an empty event.
func fire(t *testing.T, v reflect.Value) (called int) {
	t.Helper()
	for i := range v.NumField() {
		field := v.Field(i)
		if field.Kind() == reflect.Struct {
			called += fire(t, field)
			continue
		}
		require.False(t, field.IsNil(), "%v.%s is lost in the tee", v.Type(), v.Type().Field(i).Name)
		field.Call([]reflect.Value{reflect.Zero(field.Type().In(0))})
		called++
	}
	return called
}

// everyHookInOrder combines two sets of hooks of a kind and one without hooks, and calls each hook:
// a hook that is added later and missing in the tee shows here.
func everyHookInOrder[H hooks.Kind](t *testing.T, least int) {
	t.Helper()
	var told []string
	var none H
	tee := hooks.Tee(
		filled[H](func(field string) { told = append(told, "first "+field) }),
		none,
		filled[H](func(field string) { told = append(told, "second "+field) }),
	)
	called := fire(t, reflect.ValueOf(tee))
	require.GreaterOrEqual(t, called, least)
	require.Len(t, told, 2*called)
	for i := 0; i < len(told); i += 2 {
		require.Equal(t, "first "+told[i+1][len("second "):], told[i], "both, one after the other, for each event")
	}
}

func TestTeeTellsEachOfEachInOrder(t *testing.T) {
	t.Run("session", func(t *testing.T) { everyHookInOrder[lease.Hooks](t, 6) })
	t.Run("candidate", func(t *testing.T) { everyHookInOrder[election.Hooks](t, 7) })
	t.Run("observer", func(t *testing.T) { everyHookInOrder[observe.Hooks](t, 4) })
	t.Run("set", func(t *testing.T) { everyHookInOrder[hooks.Set](t, 17) })
}

// A hook that is nil in all sets costs nothing: the packages skip hooks that are nil.
func TestTeeOfNothingIsNothing(t *testing.T) {
	isZero := func(h any) { require.True(t, reflect.ValueOf(h).IsZero(), "%T", h) }
	isZero(hooks.Tee[hooks.Set]())
	isZero(hooks.Tee(hooks.Set{}, hooks.Set{}))
	isZero(hooks.Tee(lease.Hooks{}, lease.Hooks{}))
	tee := hooks.Tee(hooks.Set{}, hooks.Set{Session: lease.Hooks{Lost: func(lease.LostEvent) {}}})
	require.NotNil(t, tee.Session.Lost)
	require.Nil(t, tee.Session.Renewed)
	isZero(tee.Candidate)
}

// The slice that Tee was given may change afterwards.
func TestTeeCopies(t *testing.T) {
	calls := 0
	all := []lease.Hooks{{Lost: func(lease.LostEvent) { calls++ }}, {Lost: func(lease.LostEvent) { calls++ }}}
	tee := hooks.Tee(all...)
	all[1].Lost = nil
	all[0].Lost = func(lease.LostEvent) { t.Error("called") }
	tee.Lost(lease.LostEvent{})
	require.Equal(t, 2, calls)
}
