package schemas

// Variables by which the measured command reaches its logs.
const (
	EnvPolicyLog = "ASSAY_RUNNER_POLICY_DECISION_LOG"
	EnvRunID     = "ASSAY_RUNNER_RUN_ID"
	EnvSDKLog    = "ASSAY_RUNNER_SDK_EVENT_LOG"
	EnvSDKSchema = "ASSAY_RUNNER_SDK_EVENT_SCHEMA"
)

// EnvKeys are all that env_keys can name, sorted.
var EnvKeys = [...]string{EnvPolicyLog, EnvRunID, EnvSDKLog, EnvSDKSchema}
