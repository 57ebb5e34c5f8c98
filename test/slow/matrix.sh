#!/usr/bin/env bash
# Tries each fault of the sandbox on each family of streams, at the first, a middle and the last request, once, three times and always.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
MATRIX=whole exec npx vitest run test/runtime/source-faults.test.ts test/runtime/destination-faults.test.ts --maxWorkers=2
