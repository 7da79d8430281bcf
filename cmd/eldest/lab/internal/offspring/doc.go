// Package offspring starts processes that do not outlive this one, reads what they report,
// and returns how they ended.
//
// It needs Unix. Not guaranteed: that the processes end with this one everywhere. Linux kills
// them; on other systems they end when they notice that what they need is gone.
package offspring
