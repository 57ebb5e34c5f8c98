#!/usr/bin/env bash
# The dbt package on a snapshot, and on tables of a Meltano target and of Airbyte in a real PostgreSQL: one line for
# each scenario, then `N passed, N failed`. Needs a build (npm ci), Python 3.10 to 3.12, PyPI and PostgreSQL; says what
# it skips if they are missing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source test/slow/environments.sh
findPython 'the dbt package'

export INTEROP_VENV=$PWD/.venv NO_COLOR=1 DO_NOT_TRACK=1 AIRBYTE_OFFLINE_MODE=1
PG_BIN=$(findPostgres)
export PG_BIN
[ -x "$PG_BIN/initdb" ] || skip 'the dbt package, since PostgreSQL is not here (apt-get install postgresql)'

environments dbt target-postgres airbyte ||
  skip 'the dbt package, since dbt, target-postgres or PyAirbyte cannot be installed from PyPI'

# Emulators of warehouses, for the statements of audits; each is skipped alone.
environment fakesnow || echo 'skipped: audits of Snowflake on fakesnow, which cannot be installed from PyPI'
if ! hasMaven; then
  echo 'skipped: audits of BigQuery on GoogleSQL, since a JDK or Maven is not here' \
    '(apt-get install default-jdk-headless maven)'
else
  jars googlesql || echo 'skipped: audits of BigQuery on GoogleSQL, which cannot be installed from Maven Central'
fi
# Spark is half a gigabyte and takes minutes.
if [ -z "${SPARK:-}" ]; then echo 'skipped: audits of Databricks on Spark, which SPARK=1 runs'; else
  environment spark || echo 'skipped: audits of Databricks on Spark, which cannot be installed from PyPI'
fi

exec npx vitest run --config test/slow/dbt/vitest.config.mts
