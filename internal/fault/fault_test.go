package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
)

func TestOnlyADocumentsOwnErrorsSpendARetry(t *testing.T) {
	for _, r := range fault.Rules() {
		require.Equal(t, r.Scope == fault.ScopeDocument, r.SpendsRetry, "kind %s", r.Kind)
		require.Equal(t, r.Scope, fault.ScopeOf(r.Kind))
		require.NotEmpty(t, r.When, "kind %s tells no one when it is tried again", r.Kind)
	}
}

func TestAnUnclassifiedErrorIsOursAndNeverTheDependencys(t *testing.T) {
	err := fmt.Errorf("somewhere: %w", io.ErrUnexpectedEOF)
	require.Equal(t, fault.Internal, fault.KindOf(err))
	require.Equal(t, "unclassified", fault.CodeOf(err))
	require.False(t, fault.IsDependency(err))
	require.Equal(t, fault.ScopeDocument, fault.ScopeOf("a kind from a newer build"))
}

func TestKindConditionAndCauseSurviveWrapping(t *testing.T) {
	inner := fault.Wrap(fault.Infrastructure, "cosmos: patch", "eof", "the connection was cut", io.EOF)
	inner.Condition = fault.Changed
	err := fmt.Errorf("recording: %w", inner)
	require.True(t, fault.IsDependency(err))
	require.True(t, fault.Has(err, fault.Changed))
	require.True(t, errors.Is(err, io.EOF))
	require.Equal(t, "recording: cosmos: patch: infrastructure eof: the connection was cut: EOF", err.Error())
}

func TestNoErrorHasNoKindAndIsNeverWrapped(t *testing.T) {
	require.Equal(t, fault.Kind(""), fault.KindOf(nil))
	require.Equal(t, "", fault.CodeOf(nil))
	require.False(t, fault.IsDependency(nil))
	require.Equal(t, fault.Internal, fault.Wrap(fault.Document, "x", "1", "r", nil).Kind)
}

func TestPanicTellsNoContent(t *testing.T) {
	t.Parallel()
	caught := func(f func()) (err *fault.Error) {
		defer func() { err = fault.Panic("x: y", recover()) }()
		f()
		return nil
	}
	require.EqualError(t, caught(func() { panic("CONTENT") }), "x: y: internal panic: a panic of ours: string")
	require.EqualError(t, caught(func() { clear(*(*map[int]int)(nil)) }),
		"x: y: internal panic: a panic of ours: runtime error: invalid memory address or nil pointer dereference")
}
