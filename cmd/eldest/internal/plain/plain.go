package plain

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Fit reports whether all of a text can be shown as it is.
func Fit(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}

// Line returns a text as it is if it is fit, else quoted. What was quoted is fit.
func Line(text string) string {
	if Fit(text) {
		return text
	}
	return strconv.Quote(text)
}

// Lines leaves the ends of lines and tabs as they are, and writes what else is not fit as
// in a string of Go, without quotes around it: for texts that are ours but for what they
// were told.
func Lines(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch part := text[:size]; {
		case r == '\n', r == '\t', strconv.IsPrint(r) && (r != utf8.RuneError || size > 1):
			b.WriteString(part)
		default:
			quoted := strconv.Quote(part)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}

// JSON writes, in a text of JSON, what is not fit with the escapes of JSON: it means the
// same. encoding/json does so for the first 32 characters only.
func JSON(data string) string {
	if Fit(strings.TrimSuffix(data, "\n")) {
		return data
	}
	var b strings.Builder
	for _, r := range data {
		switch {
		case strconv.IsPrint(r), r == '\n', r == '\t': // between the values, where they mean nothing
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Texts replaces by Line all texts that *v is made of, in place: strings in structs, slices
// and maps, keys of maps among them. Whatever is added to v is not forgotten. v must be a
// pointer to what has no cycles and no unexported texts.
func Texts(v any) { texts(reflect.ValueOf(v).Elem()) }

func texts(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(Line(v.String()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			texts(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		switch v.Type().Elem().Kind() {
		case reflect.String, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map, reflect.Pointer:
			for i := range v.Len() {
				texts(v.Index(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			texts(v.Elem())
		}
	case reflect.Map:
		if v.IsNil() || !v.CanSet() {
			return
		}
		fit := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entry := v.MapRange(); entry.Next(); {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.Set(entry.Key())
			value.Set(entry.Value())
			texts(key)
			texts(value)
			fit.SetMapIndex(key, value)
		}
		v.Set(fit)
	}
}
