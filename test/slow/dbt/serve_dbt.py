"""Runs dbt for each line of stdin, a JSON list of arguments, and answers with a line: its exit status and what it printed.
Each command has a process of its own, a fork of this one, which has imported dbt: the import takes longer than most commands.
The name of this file must not begin with dbt_, since dbt imports such modules as its plugins."""

import json
import os
import sys

import dbt.adapters.duckdb
import dbt.adapters.postgres
from dbt.cli.main import cli

for line in sys.stdin:
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        cli(json.loads(line), prog_name="dbt")
    os.close(sink)
    with os.fdopen(source) as printed:
        output = printed.read()
    _, status = os.waitpid(child, 0)
    print(json.dumps({"status": os.waitstatus_to_exitcode(status), "output": output}), flush=True)
