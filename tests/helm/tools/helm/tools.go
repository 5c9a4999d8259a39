//go:build tools

// Package tools names the programs that are built from this module.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
