#!/bin/sh
# check-role.sh HOST PORT: passing (0) on a master, critical (2) on everything else. The health script that this page replaces.
[ "$(redis-cli -h "$1" -p "$2" role 2>/dev/null | head -n 1)" = master ] || exit 2
