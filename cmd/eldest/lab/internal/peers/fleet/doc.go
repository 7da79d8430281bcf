// Package fleet keeps the processes of a system's servers: it starts them, kills one and starts it again,
// reports those that end by themselves, and ends all.
//
// # Not guaranteed
//
// That a process serves when [Fleet.Start] returns. The caller asks the servers.
package fleet
