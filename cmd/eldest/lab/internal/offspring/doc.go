// Package offspring starts processes that do not outlive this one, reads what they report,
// and returns how they ended.
//
// It requires Unix. Linux kills the processes when this one ends. Not guaranteed: that they end
// with it on other systems, where they end when they notice that what they need is unavailable.
package offspring
