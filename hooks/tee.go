package hooks

import "reflect"

// Tee returns hooks that call those of all, in the order given, for each event: the
// next event is told when all have returned. Those that are nil are left out, and what
// nobody wants to hear stays nil, so that it costs nothing. all is copied.
func Tee[H Kind](all ...H) H {
	var told H
	of := make([]reflect.Value, len(all))
	for i := range all {
		of[i] = reflect.ValueOf(all[i])
	}
	tee(reflect.ValueOf(&told).Elem(), of)
	return told
}

// tee fills a struct whose fields are hooks, or structs of hooks. By reflection, so that no
// hook that is added to one can be forgotten here.
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
