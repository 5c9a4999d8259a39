//go:build tools

// Package tools names the programs that are built from this module.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
