#!/usr/bin/env bash
# Makes sure that commands are there which the tests or benchmarks call.
#
#	tools/need.sh COMMAND:PACKAGE...
#
# As root on Debian and its like it installs the packages that are missing;
# otherwise it says the command that does, and fails. A test never skips
# itself because something is not installed.
set -euo pipefail

packages=()
for need in "$@"; do
	command -v "${need%%:*}" >/dev/null || packages+=("${need#*:}")
done
[ ${#packages[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
else
	printf 'missing; on Debian or Ubuntu install with:\n\n  sudo apt-get install %s\n\n' "${packages[*]}" >&2
	exit 1
fi
