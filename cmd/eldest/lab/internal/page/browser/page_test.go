package browser_test

import "testing"

// labTest is a test in a sandbox: it begins anew, and leaves whatever it likes.
type labTest struct {
	name string
	test func(*testing.T, *lab)
}

// TestPage runs all tests, in one browser. The groups run at the same time, each with windows and a
// cluster of its own, because most tests wait most of the time: those of "waits" for leases. The last
// test measures, and runs alone.
func TestPage(t *testing.T) {
	browser := start(t)
	t.Run("all", func(t *testing.T) {
		testInSandbox(t, browser, "controls", []labTest{
			{"leader", testTheLeaderIsEtcds},
			{"resign and leave", testResignAndLeave},
			{"stop and continue", testStopAndContinue},
			{"operator", testOperatorDeletesRevokesAndTransfers},
			{"kinds and rules", testKindsAndRules},
			{"members", testMembersOfEtcd},
			{"compact", testCompact},
			{"deleted key", testDeletedKeyOfALeader},
			{"inspector", testInspector},
			{"timeline", testTimeline},
			{"scenario", testCopyAndPlay},
			{"refused", testRefusedActionIsShown},
			{"keyboard", testKeyboardReachesEverything},
			{"shortcuts", testShortcuts},
			{"contrast", testColoursHaveContrast},
			{"narrow", testNarrowWindow},
			{"pictures", testPictures},
		})
		waits := []labTest{
			{"two leaders", testTwoLeadersOfEtcdsPackageByHand},
			{"no two leaders", testNoTwoLeadersOfEldestByHand},
			{"hold", testHoldReleaseDrop},
			{"given up", testHeldMessageIsGivenUp},
			{"breakpoints", testBreakpoints},
			{"cut, delay, lose", testCutDelayHealLoseReply},
			{"lessons", testLessonsAreComplete},
			{"play lessons", testLessonsCanBePlayed},
		}
		if *allLessons { // this one takes half a minute
			waits = append(waits, labTest{"true lessons", testLessonsAreTrue})
		}
		testInSandbox(t, browser, "waits", waits)
		t.Run("cluster", func(t *testing.T) {
			t.Parallel()
			testExistingCluster(t, browser)
		})
		t.Run("markup", func(t *testing.T) {
			t.Parallel()
			testSandboxShowsMarkupAsText(t, browser)
		})
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
