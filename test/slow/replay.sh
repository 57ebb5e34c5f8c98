#!/usr/bin/env bash
# Runs a small world of each kind that many times (1,000) on both supported versions of Node: all runs of a seed must
# have one hash.
set -euo pipefail
times=${1:-1000}
npm run -s simulate -- --help >/dev/null
status=0
# In order: visits and locations, exports, comments, parts of reviews, feedback sync.
for seed in 346 698 3688 3322 661; do
  hashes=()
  for version in 20 22; do
    node=(npx --yes "node@$version")
    [[ $(node --version) == v$version.* ]] && node=(node)
    options=(--seeds "$seed-$seed" --times "$times" --hashes --workers 1)
    line=$("${node[@]}" build/simulation.cjs "${options[@]}" | grep -v ' worlds, ') || status=1
    hashes+=("$line")
    echo "Node $version, $times times: $line"
  done
  [ "${hashes[0]}" = "${hashes[1]}" ] || { echo "seed $seed has two histories"; status=1; }
done
exit "$status"
