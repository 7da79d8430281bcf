package browser_test

import "testing"

// labTest is a test in a sandbox: it begins anew, and leaves whatever it likes.
type labTest struct {
	name string
	test func(*testing.T, *lab)
}

// TestPage runs all tests, in one browser. The groups run at the same time, each with windows and a
// cluster of its own, because most tests wait most of the time. The last test measures, and runs
// alone.
func TestPage(t *testing.T) {
	browser := start(t)
	t.Run("all", func(t *testing.T) {
		testInSandbox(t, browser, "controls", []labTest{
			{"controls", testControls},
			{"deleted key", testDeletedKeyOfALeader},
			{"inspector", testInspector},
			{"timeline", testTimeline},
			{"scenario", testCopyAndPlay},
			{"keyboard", testKeyboardReachesEverything},
			{"shortcuts", testShortcuts},
			{"narrow", testNarrowWindow},
		})
		states := []labTest{
			{"leader", testTheLeaderIsEtcds},
			{"held", testHeldMessages},
			{"lessons", testLessonsCanBePlayed},
			{"contrast", testColoursHaveContrast},
		}
		if *pictures {
			states = append(states, labTest{"pictures", testPictures})
		}
		if *allLessons { // this one takes half a minute
			states = append(states, labTest{"true lessons", testLessonsAreTrue})
		}
		testInSandbox(t, browser, "states", states)
		for name, test := range map[string]func(*testing.T, *chromium){
			"cluster": testExistingCluster, "evict": testEviction, "markup": testSandboxShowsMarkupAsText,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, browser)
			})
		}
	})
	t.Run("busy", func(t *testing.T) { testBusyPageIsResponsive(t, browser) })
}

// testInSandbox runs tests in one sandbox, one after another, beside the other groups.
func testInSandbox(t *testing.T, browser *chromium, name string, tests []labTest) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		l := open(t, browser)
		for _, c := range tests {
			t.Run(c.name, func(t *testing.T) { c.test(t, l.in(t)) })
		}
	})
}
