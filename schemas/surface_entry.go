package schemas

// SurfaceEntryPrefix is the beginning of the entries of one set of the surface in a
// stream. The value as a JSON string and a closing brace follow.
func SurfaceEntryPrefix(runID string, set int) []byte {
	return []byte(`{"schema":"` + SchemaSurfaceEntry + `","run_id":"` + runID + `","set":"` + SurfaceSets[set] + `","value":`)
}
