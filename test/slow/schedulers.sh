#!/usr/bin/env bash
# The files of examples/running with the tools themselves: Dagster runs its job, Airflow imports its DAG and runs
# its tasks, the manifests meet the schema of Kubernetes. Needs a build (npm ci), Python 3.10 to 3.12 and PyPI; says
# what it skips if they are missing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source test/slow/environments.sh
findPython 'the schedulers'

environments dagster airflow kubernetes ||
  skip 'the schedulers, since Dagster, Airflow or kubernetes-validate cannot be installed from PyPI'

export SCHEDULER_VENV=$PWD/.venv DAGSTER_DISABLE_TELEMETRY=yes
exec npx vitest run --config test/slow/vitest.config.mts test/slow/schedulers.test.ts
