#!/usr/bin/env bash
# Builds both targets of the image and runs their verbs inside them against a sandbox on this machine; ends with
# `N passed, N failed`. Needs root, Debian and a build (npm ci); says that it skips where it has no way to a base image.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
stand_in=../shared/image/stand-in-base
base=docker.io/library/node:24-bookworm-slim
passed=0 failed=0

if [ -f "$stand_in" ]; then
  bash "$stand_in" || exit 1
elif ! { command -v buildah && buildah inspect --type image "$base"; } >/dev/null 2>&1; then
  echo "image: skipped, no buildah with $base here and no $stand_in to make it"
  echo "0 passed, 0 failed"
  exit 0
fi

work=$(mktemp -d)
containers=() sandbox=''
clean() {
  [ -z "$sandbox" ] || kill "$sandbox"
  for each in "${containers[@]}"; do buildah rm "$each" >/dev/null; done
  rm -rf "$work"
}
trap clean EXIT
chmod 755 "$work"

# verdict NAME STATUS: counts and reports one check.
verdict() {
  if [ "$2" = 0 ]; then passed=$((passed + 1)); echo "ok      $target: $1"; else
    failed=$((failed + 1)); echo "FAILED  $target: $1"
  fi
}
# inside [OPTION…] -- COMMAND…: runs a command in the container, the work folder mounted read-only.
inside() { buildah run --volume "$work:/config:ro" "$@"; }
# expecting NAME WANT… -- ARGUMENT…: the verb must exit 0 and print what is wanted; its input is ours.
expecting() {
  local name=$1 want=()
  shift
  while [ "$1" != -- ]; do want+=("$1"); shift; done
  shift
  inside "$container" -- "$entrypoint" "$@" | node test/slow/image/expect.mjs "${want[@]}"
  verdict "$name" $?
}

# build TARGET NAME [OPTION…]: builds the image NAME and starts a container of it, whose entry point is `entrypoint`.
build() {
  local image=localhost/$2:test status
  target=$1
  shift
  buildah bud --quiet --layers --pull-never --tag "$image" "${@:2}" . >"$work/build.log" 2>&1
  status=$?
  [ "$status" = 0 ] || tail -40 "$work/build.log"
  verdict 'the image builds' "$status"
  if [ "$status" != 0 ]; then echo "$passed passed, $failed failed"; exit 1; fi
  buildah inspect --type image "$image" | node test/slow/image/expect.mjs image "$1" "$version"
  verdict 'labels, entrypoint, user, time zone, size' $?
  container=$(buildah from --pull-never "$image")
  containers+=("$container")
  entrypoint=$(inside "$container" -- printenv AIRBYTE_ENTRYPOINT)
  inside "$container" -- sh -c 'test "$(id -u)" != 0 && touch /airbyte/file && rm /airbyte/file'
  verdict 'runs as somebody who may write to /airbyte' $?
}

version=$(node -p 'require("./package.json").version')
build source source-feedback
inside "$container" -- sh -c 'test -z "$(ls -A /connector/node_modules/typescript /connector/node_modules/vitest 2>/dev/null)"'
verdict 'holds production dependencies only' $?
inside "$container" -- cat /connector/sbom.json | node test/slow/image/expect.mjs sbom axios,@duckdb/node-bindings-linux-x64
verdict 'lists what it is made of' $?

node build/bin/feedback.js sandbox --port 0 --reviews 500 >"$work/sandbox.json" 2>"$work/sandbox.log" &
sandbox=$!
for _ in $(seq 100); do [ -s "$work/sandbox.json" ] && break; sleep 0.1; done
[ -s "$work/sandbox.json" ]
status=$?
[ "$status" = 0 ] || cat "$work/sandbox.log"
verdict 'the sandbox listens' "$status"
[ "$status" = 0 ] && node test/slow/image/inputs.mjs "$work" <"$work/sandbox.json"

expecting 'spec' spec -- spec
expecting 'check' check SUCCEEDED -- check --config /config/source.json
expecting 'check of a wrong config' check FAILED -- check --config /config/wrong.json
expecting 'discover' discover reviews,deleted_reviews -- discover --config /config/source.json
inside "$container" -- feedback catalog --config /config/source.json --select reviews >"$work/catalog.json"
verdict 'feedback catalog' $?
expecting 'read' read reviews=500 -- read --config /config/source.json --catalog /config/catalog.json

buildah config --workingdir / "$container"
expecting 'check from another working directory, by a relative path' check SUCCEEDED -- check --config config/source.json

build destination destination-feedback --target destination
expecting 'spec' spec -- spec
expecting 'check' check SUCCEEDED -- check --config /config/destination.json
expecting 'check of a wrong config' check FAILED -- check --config /config/wrong.json
expecting 'discover' objects locations,visit_records -- discover --config /config/destination.json
expecting 'write' written locations=1+0,visit_records=2+1 \
  -- write --config /config/destination.json --catalog /config/writing.json <"$work/messages.jsonl"
truth=$(node -p 'const { url, access_token } = JSON.parse(require("fs").readFileSync(0)); `${url}/__sandbox/truth?access_token=${access_token}`' <"$work/sandbox.json")
node -e 'fetch(process.argv[1]).then((answer) => answer.text()).then(console.log)' "$truth" |
  node test/slow/image/expect.mjs held visit-1,visit-2
verdict 'the visits are there' $?
inside "$container" -- cat /airbyte/rejected.jsonl | node test/slow/image/expect.mjs letters 'email is missing'
verdict 'the rejected one is in the dead-letter file, with its reason' $?

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
