// Package netns runs a program in a network namespace of its own, in which every address leads to listeners that this
// process has, whatever the program's proxy variables say.
package netns

import (
	"time"

	"github.com/runner-evidence/runner/cmd/internal/wrap"
)

// Config says what the namespace is to be. It goes to the process inside as JSON.
type Config struct {
	Ports       []uint16      `json:"ports"`       // of TCP that are listened on
	Certificate []byte        `json:"certificate"` // PEM of the authority that the program is to trust
	State       wrap.State    `json:"state"`       // of wrappers further out, and the program's user
	Tools       string        `json:"tools"`       // directory of our own programs
	Rootless    bool          `json:"rootless"`    // there is a user namespace too
	Command     []string      `json:"command"`
	Env         []string      `json:"env"`
	Grace       time.Duration `json:"grace"`
}

// trusting are the variables by which programs are told whom to trust.
var trusting = []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "DENO_CERT", "NPM_CONFIG_CAFILE"}

// proxying are the variables of proxies. Those outside cannot be reached, and none is needed.
var proxying = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy", "NPM_CONFIG_PROXY", "NPM_CONFIG_HTTPS_PROXY", "npm_config_proxy", "npm_config_https_proxy"}

// bundles are the places where systems keep whom they trust.
var bundles = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"}

// resolvers are sockets of programs outside that would answer for the program.
var resolvers = []string{"/run/nscd", "/var/run/nscd", "/run/systemd/resolve"}

// nameserver is the one that the program is told of. All others lead to the same listener.
const nameserver = "127.0.0.53"
