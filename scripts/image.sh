#!/usr/bin/env bash
# Builds one of the two images with buildah. Every build of a commit gives the same bytes, wherever and whenever it
# runs.
#   scripts/image.sh TARGET IMAGE [OPTION…]     TARGET: source, destination; OPTION: of `buildah build`
# SOURCE_DATE_EPOCH is the time of all its files, in seconds since 1970; by default that of the last commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
exec buildah build --quiet --layers=false --target "$1" --tag "$2" \
  --timestamp "$epoch" --build-arg "SOURCE_DATE_EPOCH=$epoch" --identity-label=false "${@:3}" .
