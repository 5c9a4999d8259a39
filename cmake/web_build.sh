#!/usr/bin/env bash
# web_build.sh WEB NPM - installs what the lock file names when it changed, builds WEB/dist.
# Several build folders may ask at once: they take turns.
set -euo pipefail
web=$1 npm=$2
PATH=$(dirname "$npm"):$PATH
cd "$web"
exec 9<package.json
flock 9
if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
    "$npm" ci --no-audit --no-fund --loglevel=error
    touch node_modules/.package-lock.json
fi
"$npm" run --silent build
touch dist/.built
