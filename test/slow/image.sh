#!/usr/bin/env bash
# Releases a copy of this checkout without publishing it, which builds both images twice, and runs their verbs inside
# them against a sandbox on this machine; ends with `N passed, N failed`. Needs root, Debian and a build (npm ci); says
# that it skips if it cannot reach a base image.
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
containers=() sandbox='' target=release
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

# locked [NAME=VALUE…] -- COMMAND…: runs a command in the container as Kubernetes may: by a user that the image does
# not know, without a home, the root read-only. It may write to /tmp and /data; /config is the work folder, read-only.
locked() {
  local variables=()
  while [ "$1" != -- ]; do variables+=("$1"); shift; done
  shift
  unshare --mount bash -euc '
    root=$1 work=$2
    shift 2
    mkdir -p "$work/root" "$work/data" "$root/config" "$root/data"
    chmod 777 "$work/data"
    mount --bind "$root" "$work/root"
    mount --bind "$work" "$work/root/config"
    mount -o remount,bind,ro "$work/root/config"
    mount --bind "$work/data" "$work/root/data"
    mount -t tmpfs -o mode=1777 tmpfs "$work/root/tmp"
    mount --rbind /dev "$work/root/dev"
    mount -t proc proc "$work/root/proc"
    mount -o remount,bind,ro "$work/root"
    exec chroot --userspec=12345:54321 "$work/root" env -i -C /airbyte "$@"
  ' locked "$(buildah mount "$container")" "$work" \
    PATH=/connector/node_modules/.bin:/usr/local/bin:/usr/bin:/bin "${variables[@]}" "$@"
}

# start TARGET: starts a container of the image that the release built; its entry point is `entrypoint`.
start() {
  local image=localhost/feedback/$1-feedback:$version
  target=$1
  buildah inspect --type image "$image" | node test/slow/image/expect.mjs image "$1-feedback" "$version" "$digest"
  verdict 'labels, entrypoint, user, time zone, size' $?
  container=$(buildah from --pull-never "$image")
  containers+=("$container")
  # Not by a command in the container: on a busy machine the output of a short one may be lost.
  entrypoint=$(buildah inspect --type image --format '{{range .OCIv1.Config.Env}}{{println .}}{{end}}' "$image" |
    sed -n 's/^AIRBYTE_ENTRYPOINT=//p')
  inside "$container" -- sh -c 'test "$(id -u)" != 0 && touch /airbyte/file && rm /airbyte/file'
  verdict 'runs as somebody who may write to /airbyte' $?
  locked -- sh -c 'test "$(id -u)" = 12345 && ! touch /airbyte/file 2>&1 | grep -v "Read-only" &&
    touch /tmp/file /data/file && rm /data/file'
  verdict 'starts as any user on a read-only root' $?
}

version=$(node -p 'require("./package.json").version')
digest=$(buildah inspect --format '{{.FromImageDigest}}' --type image "$base")
copy=$work/checkout out=$work/out
mkdir "$copy"
git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -c -T - | tar -x -C "$copy"
sed -i "0,/^## .*/s//## $version (2026-01-02)/" "$copy/CHANGELOG.md"
(cd "$copy" && git init -q && git add -A && git -c user.name=Test -c user.email=test@example.com commit -qm Release)
node "$copy/scripts/release.mjs" --images --base-digest "$digest" --out "$out" >"$work/release.log" 2>&1
status=$?
tail -20 "$work/release.log"
verdict 'package and images are the same when they are built twice' "$status"
if [ "$status" != 0 ]; then echo "$passed passed, $failed failed"; exit 1; fi
node test/slow/image/expect.mjs provenance "$(git -C "$copy" rev-parse HEAD)" "$digest" <"$out/provenance.json"
verdict 'the statement of provenance names the commit, the base and both images' $?
(
  . test/slow/environments.sh
  findPython 'the schemas of in-toto and CycloneDX'
  environment supply-chain ||
    skip 'the schemas of in-toto and CycloneDX, since their libraries cannot be installed from PyPI'
  .venv/supply-chain/bin/python test/slow/image/validate.py "$out"
)
verdict 'the statement and the lists of parts meet their schemas' $?

start source
inside "$container" -- sh -c '
  cd /connector/node_modules
  test -z "$(ls -A typescript vitest 2>/dev/null)"'
verdict 'holds production dependencies only' $?
inside "$container" -- cat /connector/sbom.json |
  node test/slow/image/expect.mjs sbom axios,detect-libc,@duckdb/node-bindings-linux-x64
verdict 'lists what it is made of' $?
inside "$container" -- cat /connector/sbom.json | cmp - "$out/source-feedback-$version.sbom.json"
verdict 'holds the list that the release has' $?
inside "$container" -- dpkg-query --show --showformat='${Package}@${Version}\n' | sort >"$work/debian"
node test/slow/image/expect.mjs debian "$work/debian" <"$out/source-feedback-$version.sbom.json"
verdict 'lists every Debian package, with its licenses' $?

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
expecting 'check from another working directory, by a relative path' check SUCCEEDED \
  -- check --config config/source.json

service=(
  FEEDBACK_BASE_URL="$(cat "$work/url")"
  FEEDBACK_START_DATE=2000-01-01
  FEEDBACK_CREDENTIALS_AUTH_TYPE=application
  FEEDBACK_CREDENTIALS_APPLICATION_ID_FILE=/config/id
  FEEDBACK_CREDENTIALS_APPLICATION_SECRET_FILE=/config/secret
  FEEDBACK_CREDENTIALS_TOKEN_URL="$(cat "$work/token-url")"
)
locked "${service[@]}" -- source-feedback read --config ENV --catalog /config/catalog.json |
  node test/slow/image/expect.mjs read reviews=500
verdict 'reads as any user on a read-only root, its secrets in files' $?
locked "${service[@]}" -- feedback sync --config ENV --db /data/reviews.duckdb --select reviews >/dev/null &&
  locked "${service[@]}" -- feedback verify --config ENV --db /data/reviews.duckdb | tail -1
verdict 'feedback sync and verify write to the folder of the file alone' "$((PIPESTATUS[0]))"
audit=(--config ENV --stream reviews --dialect duckdb --table reviews)
locked "${service[@]}" -- feedback audit "${audit[@]}" >"$work/audit.sql" && [ -s "$work/audit.sql" ]
verdict 'feedback audit writes to /tmp alone' $?

start destination
expecting 'spec' spec -- spec
expecting 'check' check SUCCEEDED -- check --config /config/destination.json
expecting 'check of a wrong config' check FAILED -- check --config /config/wrong.json
expecting 'discover' objects locations,visit_records -- discover --config /config/destination.json
expecting 'write' written locations=1+0,visit_records=2+1 \
  -- write --config /config/destination.json --catalog /config/writing.json <"$work/messages.jsonl"
truth=$(node -p '
  const { url, access_token } = JSON.parse(require("fs").readFileSync(0));
  `${url}/__sandbox/truth?access_token=${access_token}`' <"$work/sandbox.json")
node -e 'fetch(process.argv[1]).then((answer) => answer.text()).then(console.log)' "$truth" |
  node test/slow/image/expect.mjs held visit-1,visit-2
verdict 'the visits are there' $?
inside "$container" -- cat /airbyte/rejected.jsonl | node test/slow/image/expect.mjs letters 'email is missing'
verdict 'the rejected one is in the dead-letter file, with its reason' $?
write=(--config /config/locked.json --catalog /config/writing.json)
locked -- destination-feedback write "${write[@]}" <"$work/messages.jsonl" |
  node test/slow/image/expect.mjs written locations=1+0,visit_records=2+1 &&
  node test/slow/image/expect.mjs letters 'email is missing' <"$work/data/rejected.jsonl"
verdict 'writes as any user on a read-only root' $?

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
