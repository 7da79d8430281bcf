// Package systems lists the systems that "eldest bench peers" measures, and the servers among them that are
// Go libraries.
//
// # Not guaranteed
//
// That their servers can be started here: some are programs of their own, which must be installed.
package systems
