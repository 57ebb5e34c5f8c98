#!/usr/bin/env bash
# Real clients of the connector, Meltano and PyAirbyte, against a sandbox: one line a scenario, then `N passed, N failed`.
# Needs a build (npm ci), Python 3.10 to 3.12 and PyPI; says plainly what it skips where they are missing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

skip() {
  echo "skipped: $1"
  echo "0 passed, 0 failed"
  exit 0
}

python=''
for candidate in python3.12 python3.11 python3.10 python3; do
  "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null &&
    python=$candidate && break
done
[ -n "$python" ] || skip 'Meltano and PyAirbyte, since no Python 3.10 to 3.12 with venv is here'

# environment NAME: a virtual environment with the pinned versions, made anew when they change.
environment() {
  local home=.venv/$1 wanted=test/slow/interop/requirements/$1.txt
  cmp -s "$wanted" "$home/requirements.txt" && return
  rm -rf "$home"
  "$python" -m venv "$home" && "$home/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" &&
    cp "$wanted" "$home/requirements.txt"
}

for name in meltano airbyte; do
  environment "$name" || skip "Meltano and PyAirbyte, since $name cannot be installed from PyPI"
done

"$python" --version
export INTEROP_VENV=$PWD/.venv NO_COLOR=1 DO_NOT_TRACK=1 AIRBYTE_OFFLINE_MODE=1 MELTANO_SEND_ANONYMOUS_USAGE_STATS=false
exec npx vitest run --config test/slow/interop/vitest.config.mts
