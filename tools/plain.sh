#!/usr/bin/env bash
# Prints the packages of this module with tests that the race detector changes: they count
# allocations or memory, or have a file for builds without it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
git grep -lE 'AllocsPerRun|runtime\.MemStats|^//go:build .*!race' -- '*_test.go' ':!bench' ':!tools' |
	xargs -n1 dirname | sort -u | sed 's|^|./|'
