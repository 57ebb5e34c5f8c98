#!/usr/bin/env bash
# A lake that many processes write, with its catalogue in a real PostgreSQL and its rows in a server that speaks S3:
# test/slow/lake.sh [REVIEWS [KILLS [WRITERS]]]; LAKE_ONLY=REGEXP keeps the tests of these names. Needs a build (npm
# ci), Python 3.10 to 3.12, PyPI, PostgreSQL, a JDK and Maven; says what it skips.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source test/slow/environments.sh
findPython 'the lake'

PG_BIN=$(findPostgres)
export PG_BIN NO_COLOR=1
[ -x "$PG_BIN/initdb" ] || skip 'the lake, since PostgreSQL is not here (apt-get install postgresql)'
environment lake || skip "the lake, since DuckDB's extensions cannot be installed from PyPI"
hasMaven || skip 'the lake, since a JDK or Maven is not here (apt-get install default-jdk-headless maven)'
jars s3proxy || skip 'the lake, since S3Proxy cannot be installed from Maven Central'

export VIRTUAL_ENV=$PWD/.venv/lake LAKE_REVIEWS=${1:-} LAKE_KILLS=${2:-} LAKE_WRITERS=${3:-}
unset FEEDBACK_DUCKDB_EXTENSIONS
exec npx vitest run --config test/slow/vitest.config.mts \
  test/slow/lake.test.ts test/slow/lake-folder.test.ts ${LAKE_ONLY:+-t "$LAKE_ONLY"}
