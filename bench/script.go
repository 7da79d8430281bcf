package bench

// A turn, and what a scenario does before its turns, is a script as a test is: what fails ends
// it. check and must do that by a panic, of which try makes an error again.

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

// try runs a script and returns the error that has ended it.
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
