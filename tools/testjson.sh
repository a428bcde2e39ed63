#!/usr/bin/env bash
# Prints the events of the tests of several modules, for gotestsum:
#	testjson.sh MODULE... -- [arguments of go test]
# It fails if go test failed in any of them.
set -uo pipefail
modules=()
while [ "$1" != -- ]; do
	modules+=("$1")
	shift
done
shift
status=0
for module in "${modules[@]}"; do
	(cd "$module" && go test -json "$@") || status=1
done
exit $status
