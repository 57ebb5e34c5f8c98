# What the parts that need Python, Java or PostgreSQL share; run from the root of the checkout. Sets `python`, and asks
# PyPI and Maven Central for environments.

# Python that may not keep what it compiles takes seconds more for each import of dbt or Airbyte.
unset PYTHONDONTWRITEBYTECODE

skip() {
  echo "skipped: $1"
  echo "0 passed, 0 failed"
  exit 0
}

# findPython FOR: sets `python` to a Python 3.10 to 3.12, or skips.
findPython() {
  python=''
  for candidate in python3.12 python3.11 python3.10 python3; do
    "$candidate" -c '
import sys, venv, ensurepip
sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null && python=$candidate && break
  done
  [ -n "$python" ] || skip "$1, since no Python 3.10 to 3.12 with venv is here"
  environment uv || skip "$1, since uv cannot be installed from PyPI"
}

# environment NAME [OPTION…]: a virtual environment with the pinned versions, made again when they change; options are
# those of uv pip install. uv finds in 11 s which versions fit together, pip in more than two minutes; and venv takes
# 6 s to install the pip that only uv's environment needs.
environment() {
  mkdir -p .venv
  # Parts that run side by side may want the same one.
  (! command -v flock >/dev/null || flock 9; makeEnvironment "$@") 9>".venv/$1.lock"
}
# environments NAME…: these beside each other; fails where one of them cannot be installed.
environments() {
  local name pid pids=() status=0
  for name; do environment "$name" & pids+=($!); done
  for pid in "${pids[@]}"; do wait "$pid" || status=1; done
  return "$status"
}
makeEnvironment() {
  local home=.venv/$1 wanted=test/slow/requirements/$1.txt uv=.venv/uv/bin/uv
  cmp -s "$wanted" "$home/requirements.txt" && return
  rm -rf "$home"
  if [ "$1" = uv ]; then
    "$python" -m venv "$home" && "$home/bin/pip" install --disable-pip-version-check --quiet -r "$wanted"
  else
    "$uv" venv --quiet --python "$(command -v "$python")" "$home" &&
      "$uv" pip install --python "$home/bin/python" --quiet "${@:2}" -r "$wanted"
  fi && cp "$wanted" "$home/requirements.txt"
}

# findPostgres: prints the folder of PostgreSQL's programs; Debian keeps them out of PATH.
findPostgres() {
  local program
  program=$(command -v pg_ctl || ls -d /usr/lib/postgresql/*/bin/pg_ctl 2>/dev/null | sort -V | tail -1)
  dirname "$(readlink -f "$program")"
}

hasMaven() {
  command -v javac >/dev/null && command -v mvn >/dev/null
}

# jars NAME: the pinned packages of Maven, in .venv/NAME, copied anew when they change. Needs what `hasMaven` looks for.
jars() {
  local home=.venv/$1 wanted=test/slow/requirements/$1.xml
  cmp -s "$wanted" "$home/$1.xml" && return
  rm -rf "$home"
  mvn -q -B -f "$wanted" dependency:copy-dependencies -DoutputDirectory="$PWD/$home" && cp "$wanted" "$home/"
}
