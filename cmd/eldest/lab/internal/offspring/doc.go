// Package offspring starts processes that do not outlive this one, and reads how they
// ended.
//
// Not guaranteed: the death of the processes with ours everywhere. Linux kills them;
// other systems know no such thing, and there they end by themselves as soon as they
// notice that what they need is gone.
package offspring
