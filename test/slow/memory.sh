#!/usr/bin/env bash
# Reads so many records, 10,000,000 unless told, and prints the peak memory at a tenth of them and at the end: test/slow/memory.sh [RECORDS].
# Fails where a record is missing, or where the peak of all is more than a quarter above the peak of the first tenth.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
exec node test/slow/memory/read.mjs "${1:-10000000}"
