#!/usr/bin/env bash
# Fuzzes every target of the module in the working directory, one after the
# other; the first finding ends it.
#
#	tools/fuzz.sh FUZZTIME
#
# FUZZTIME is a time (30s) or a number of inputs (20000x), as go test takes it.
set -euo pipefail

# go test -list prints the targets of a package, then a line with its name.
targets=$(go test -list '^Fuzz' ./... | awk '
	/^Fuzz/ { names[++n] = $1 }
	/^ok/   { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }')

while read -r package name; do
	[ -n "$package" ] || continue
	printf 'fuzz %s %s\n' "$package" "$name"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$1" "$package" </dev/null
done <<<"$targets"
