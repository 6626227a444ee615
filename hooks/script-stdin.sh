#!/bin/sh
# Installed by 'git arborist hooks install'; 'git arborist hooks uninstall' takes it away again.
# The hook that stood here before, if any, goes first; both read the same lines.
if [ -x "$0.pre-arborist" ]; then
	lines=$(cat)
	{ [ -z "$lines" ] || printf '%s\n' "$lines"; } | "$0.pre-arborist" "$@" || exit
	exec <<END
$lines
END
fi
@CHECK@
