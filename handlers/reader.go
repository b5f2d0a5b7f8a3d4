package handlers

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// space is the white space of JSON.
const space = " \t\r\n"

// maxDepth bounds nesting. Newtonsoft, which wrote the text, gives up at 64 (docs/facts.md F45).
const maxDepth = 1000

// tolerant are the options of reading: a name that occurs twice and bytes that are not UTF-8 are no errors.
func tolerant() []jsontext.Options {
	return []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
}

// reader reads JSON. Values are slices of its text, so 100 MB of documents are not copied.
type reader struct {
	*jsontext.Decoder
	text []byte
}

// read reads a text that consists of one value. The error repeats nothing of the text.
func read(text []byte, one func(r reader) error) error {
	r := reader{jsontext.NewDecoder(bytes.NewBuffer(text), tolerant()...), text}
	if err := one(r); err != nil {
		var syntax *jsontext.SyntacticError
		if errors.As(err, &syntax) {
			return fmt.Errorf("no JSON from byte %d on", syntax.ByteOffset)
		}
		return err
	}
	if _, err := r.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("text behind its end")
	}
	return nil
}

// each reads an object or an array. item reads one value: of the member with this name, or an element without a name.
func (r reader) each(item func(name string) error) error {
	opening, err := r.ReadToken()
	if err != nil {
		return err
	}
	for r.PeekKind() != '}' && r.PeekKind() != ']' {
		name := ""
		if opening.Kind() == '{' {
			token, err := r.ReadToken()
			if err != nil {
				return err
			}
			name = token.String()
		}
		if err := item(name); err != nil {
			return err
		}
	}
	_, err = r.ReadToken()
	return err
}

// values reads an object or an array and calls f for each value.
func (r reader) values(f func(name string, value []byte)) error {
	return r.each(func(name string) error {
		value, err := r.value()
		if err == nil {
			f(name, value)
		}
		return err
	})
}

// value reads a value of up to maxDepth levels.
func (r reader) value() ([]byte, error) {
	from, outside := r.InputOffset(), r.StackDepth()
	for {
		if _, err := r.ReadToken(); err != nil {
			return nil, err
		}
		switch levels := r.StackDepth() - outside; {
		case levels == 0:
			to := r.InputOffset()
			return bytes.TrimLeft(r.text[from:to:to], ",:"+space), nil
		case levels > maxDepth:
			return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
		}
	}
}
