//go:build tools

// Package tools names the programs that are built from this module.
package tools

import _ "go.etcd.io/etcd/server/v3"
