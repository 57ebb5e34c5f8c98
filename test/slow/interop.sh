#!/usr/bin/env bash
# Real clients of the connector, such as Meltano, PyAirbyte and dlt, against a sandbox, and Python's readers of its
# files: one line for each scenario, then `N passed, N failed`. Needs a build (npm ci), Python 3.10 to 3.12 and PyPI;
# says what it skips if they are missing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

source test/slow/environments.sh
findPython 'Meltano and PyAirbyte'

environments meltano airbyte || skip 'Meltano and PyAirbyte, since one of them cannot be installed from PyPI'
# The package of the rules wants the platform's servers too; what the rules themselves need is pinned.
environment dlt ||
  echo "skipped: dlt, since it cannot be installed from PyPI with $("$python" --version)"
environment airbyte-rules --no-deps ||
  echo "skipped: Airbyte's quality rules, since airbyte-internal-ops cannot be installed from PyPI" \
    "with $("$python" --version)"
environments duckdb-1.4 duckdb-1.5 duckdb-2.0 ||
  echo "skipped: Python's readers of our files, since one of them cannot be installed from PyPI" \
    "with $("$python" --version)"

"$python" --version
export INTEROP_VENV=$PWD/.venv NO_COLOR=1 DO_NOT_TRACK=1 AIRBYTE_OFFLINE_MODE=1 MELTANO_SEND_ANONYMOUS_USAGE_STATS=false
exec npx vitest run --config test/slow/interop/vitest.config.mts "$@"
