package schemas

// SurfaceEntryPrefix is what the entries of one set of the surface begin with in a
// stream: the value's JSON string and a closing brace follow.
func SurfaceEntryPrefix(runID string, set int) []byte {
	return []byte(`{"schema":"` + SchemaSurfaceEntry + `","run_id":"` + runID + `","set":"` + SurfaceSets[set] + `","value":`)
}
