package main

import (
	"debug/buildinfo"
	"os"
	"path"
	"path/filepath"
)

// What is built, pinned.
const (
	cosignCommand  = "github.com/sigstore/cosign/v3/cmd/cosign"
	cosignVersion  = "v3.1.3"
	opaCommand     = "github.com/open-policy-agent/opa"
	opaVersion     = "v1.22.0"
	builderCommand = "go.opentelemetry.io/collector/cmd/builder"
	builderVersion = "v0.155.0"

	collectorManifest = `# The Collector of make interop: what comes by OTLP is sent on by OTLP.
dist:
  name: collector
  output_path: ./collector
receivers:
  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v0.155.0
exporters:
  - gomod: go.opentelemetry.io/collector/exporter/otlphttpexporter v0.155.0
providers:
  - gomod: go.opentelemetry.io/collector/confmap/provider/envprovider v1.61.0
  - gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v1.61.0
  - gomod: go.opentelemetry.io/collector/confmap/provider/yamlprovider v1.61.0
`
)

// command is a Go program of the module proxy in this version. It is built if it is not there.
func (c *check) command(name, version string) (string, error) {
	bin := filepath.Join(c.cache, "bin")
	file := filepath.Join(bin, path.Base(name))
	if info, err := buildinfo.ReadFile(file); err == nil && info.Path == name && info.Main.Version == version {
		return file, nil
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", err
	}
	return file, c.build(os.Stderr, []string{"GOBIN=" + bin, "GOFLAGS="}, "go", "install", name+"@"+version)
}

// built is a Collector made from the manifest.
func (c *check) built() (string, error) {
	manifest, file := filepath.Join(c.cache, "collector.yaml"), filepath.Join(c.cache, "collector", "collector")
	if b, err := os.ReadFile(manifest); err == nil && string(b) == collectorManifest {
		if _, err := buildinfo.ReadFile(file); err == nil {
			return file, nil
		}
	}
	builder, err := c.command(builderCommand, builderVersion)
	if err == nil {
		err = os.RemoveAll(filepath.Dir(file))
	}
	if err == nil {
		err = os.WriteFile(manifest, []byte(collectorManifest), 0o644)
	}
	if err == nil {
		err = c.build(os.Stderr, []string{"GOFLAGS="}, builder, "--config=collector.yaml")
	}
	return file, err
}
