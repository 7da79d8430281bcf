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

// Line returns a fit text as it is, and any other one quoted. A quoted text is fit.
func Line(text string) string {
	if Fit(text) {
		return text
	}
	return strconv.Quote(text)
}

// Lines keeps line ends and tabs, and escapes all other characters that are not fit as in a string of
// Go, without quotes around it: for texts of eldest that include text from outside.
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

// JSON writes the characters of a JSON text that are not fit as JSON escapes, which mean the same.
// encoding/json does so for the first 32 characters only.
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

// Texts replaces every string in *v by Line of it, in place: strings in structs, slices and maps, and
// the keys of maps. Fields that are added to v need no change here. v must be a pointer to a value
// without cycles and without unexported strings.
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
