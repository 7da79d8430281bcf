// Package gate holds back requests before they are sent.
package gate
