package hooks

import "reflect"

// Tee returns hooks that call those of all, in the order given, for each event; the next event
// follows when all have returned. Nil hooks are left out. A hook that is nil in all stays nil, so
// that it costs nothing. all is copied.
func Tee[H Kind](all ...H) H {
	var told H
	of := make([]reflect.Value, len(all))
	for i := range all {
		of[i] = reflect.ValueOf(all[i])
	}
	tee(reflect.ValueOf(&told).Elem(), of)
	return told
}

// tee fills a struct whose fields are hooks, or structs of hooks. It uses reflection, so that a
// hook that is added later cannot be forgotten here.
func tee(told reflect.Value, all []reflect.Value) {
	for i := range told.NumField() {
		var parts []reflect.Value
		for _, of := range all {
			if part := of.Field(i); part.Kind() == reflect.Struct || !part.IsNil() {
				parts = append(parts, part)
			}
		}
		switch field := told.Field(i); {
		case field.Kind() == reflect.Struct:
			tee(field, parts)
		case len(parts) == 1:
			field.Set(parts[0])
		case len(parts) > 1:
			field.Set(reflect.MakeFunc(field.Type(), func(event []reflect.Value) []reflect.Value {
				for _, hook := range parts {
					hook.Call(event)
				}
				return nil
			}))
		}
	}
}
