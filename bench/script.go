package bench

// A turn, and the set-up of a scenario, is written like a test: an error ends it. check and must
// panic for that purpose, and try turns the panic into an error again.

type failed struct{ err error }

func check(err error) {
	if err != nil {
		panic(failed{err})
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

// try calls script and returns the error that ended it.
func try(script func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failed:
			err = p.err
		default:
			panic(p)
		}
	}()
	script()
	return nil
}
