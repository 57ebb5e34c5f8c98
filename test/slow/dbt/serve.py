"""Runs a Python program for each line of stdin, {"import": [MODULE…], "run": [PATH, ARGUMENT…]}, and answers with a line: its exit status
and what it printed. Each program has a process of its own, a fork of this one, which keeps the modules: their import takes longer than most programs.
The name of this file must not begin with dbt_, since dbt imports such modules as its plugins."""

import gc
import importlib
import json
import os
import runpy
import sys
import traceback


def run(arguments):
    """Ends the process without what modules do at an exit: they would wait for threads that a fork does not have."""
    sys.argv = arguments
    status = 0
    try:
        runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    # Connections that nobody holds any more are closed.
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


for line in sys.stdin:
    request = json.loads(line)
    for module in request["import"]:
        importlib.import_module(module)
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        run(request["run"])
    os.close(sink)
    with os.fdopen(source) as printed:
        output = printed.read()
    _, status = os.waitpid(child, 0)
    print(json.dumps({"status": os.waitstatus_to_exitcode(status), "output": output}), flush=True)
