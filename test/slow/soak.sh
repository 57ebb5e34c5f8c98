#!/usr/bin/env bash
# Kills many runs at random moments and holds what they leave against the service, and simulates many more than `npm test`:
# test/slow/soak.sh [RUNS], SEED=N for another course, SCAN_RUNS=N for so many simulated services.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
SCAN_RUNS=${SCAN_RUNS:-2000} SOAK=${1:-200} exec npx vitest run test/slow/soak.test.ts test/export/scan/scan.test.ts --disable-console-intercept
