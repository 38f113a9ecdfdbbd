// Package schemas is the contract of the runner: the types of every line and
// document, their JSON form and their validation. README.md beside it is the
// specification; the sub-packages stream and bundle frame lines and archives.
package schemas
