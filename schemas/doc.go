// Package schemas is the contract of the runner: the types of every line and
// document, their JSON form and their validation. The specification is in the same
// folder: README.md is its index, with the words that it uses. Every word that two
// places must agree on is a row of a table here: Counters, Facts, Notes, Reasons,
// EventTypes, Operations, Ambiguities, Filters, Environment, Shims, Streams, Layers.
// The specification's tables are written from these. The sub-packages
// stream, bundle and archive frame lines and archives.
package schemas
