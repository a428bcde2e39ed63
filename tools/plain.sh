#!/usr/bin/env bash
# Prints the packages of this module whose tests are to run without the race detector:
#	tools/plain.sh          those that it changes, since they count allocations or memory or
#	                        have a file for builds without it, and those of one goroutine
#	tools/plain.sh single   those of one goroutine: it finds nothing there
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
single='./internal/archtest ./internal/backlog ./queue/cron'
if [ "${1:-}" = single ]; then
	tr ' ' '\n' <<<"$single"
	exit
fi
{
	tr ' ' '\n' <<<"$single"
	git grep -lE 'AllocsPerRun|runtime\.MemStats|^//go:build .*!race' -- '*_test.go' ':!bench' ':!tools' |
		xargs -n1 dirname | sed 's|^|./|'
} | sort -ur # so that shm/internal/pool, which takes minutes on one processor, is not the last
