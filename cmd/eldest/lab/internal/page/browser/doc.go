// Package browser tests the page of "eldest lab" in Chromium, as a user uses it: the real command,
// on a real cluster, in a real browser without a window.
//
// A test clicks, types and reads the page. What it then asserts comes from the feed, which it reads
// beside the page, from etcd, or from the kernel (the state of a process): a click that only looks
// right is not enough. That an action has its effect is tested in package sandbox. Each test ends with a check that the page has logged no error and no
// warning, that no request has failed, and that the content security policy was not violated.
//
// It takes about forty seconds of two processors. So "go test" runs it only with -browser, or with
// CI=true:
//
//	go test ./lab/internal/page/browser -browser             # each control, some lessons
//	go test ./lab/internal/page/browser -browser -lessons    # plays each lesson, and what some say: two minutes more
//	go test ./lab/internal/page/browser -browser -run TestPage/all/controls/shortcuts
//	go test ./lab/internal/page/browser -browser -run TestPage/all/states/pictures -pictures
//
// The last one writes the pictures of docs/pictures. Chromium comes from Debian's package. Where
// there is none, the test is skipped, and fails with CI=true.
//
// There is one browser, and one cluster for each of the two groups of tests that run at the same time.
// Each test has a window with cookies and storage of its own, and begins with a new queue. An existing
// cluster, and a crowd, are events that the test writes.
//
// # Not guaranteed
//
// Times of the page are measured and logged. They are compared only with bounds that a machine that
// is busy with other tests keeps too. Other browsers are not tested.
package browser
