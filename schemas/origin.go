package schemas

// Origins: whose marks an archive has, and so by which rules it is checked (ARCHIVE.md,
// "Two profiles").
const (
	OriginRunner   = "runner"   // this runner's
	OriginContract = "contract" // another implementation's: only the rules of the v0 contract hold
)

// Origins are both.
var Origins = [...]string{OriginRunner, OriginContract}
