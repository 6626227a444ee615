#!/bin/sh
# Installed by 'git arborist hooks install'; 'git arborist hooks uninstall' takes it away again.
# The hook that stood here before, if any, goes first.
[ ! -x "$0.pre-arborist" ] || "$0.pre-arborist" "$@" || exit
@CHECK@
