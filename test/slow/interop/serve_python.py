"""Runs a Python program in forks of one process that has imported what it needs, since the import takes longer than most commands.

serve_python.py SOCKET MODULE…: imports the modules when the first command comes, and ends with its stdin. run_forked.py sends commands.
A command does not get signals here: one that shall be ended needs a process of its own.
"""

import importlib
import json
import os
import select
import socket
import sys


def become(command, descriptors):
    """Makes the process that was asked for of this fork, and runs its program to the end."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(command["cwd"])
    os.environ.clear()
    os.environ.update(command["env"])
    sys.argv = command["arguments"]
    module, function = command["entry"].split(":")
    sys.exit(getattr(importlib.import_module(module), function)())


def take(connection):
    """The command that a client sends, and its stdin, stdout and stderr."""
    text, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while not text.endswith(b"\n"):
        text += connection.recv(1 << 16)
    return json.loads(text), descriptors


path, *modules = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
print("listening", flush=True)
while True:
    ready, _, _ = select.select([listener, sys.stdin], [], [])
    if listener not in ready:
        sys.exit()
    connection, _ = listener.accept()
    for module in modules:
        importlib.import_module(module)
    command, descriptors = take(connection)
    child = os.fork()
    if child == 0:
        listener.close()
        connection.close()
        become(command, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    _, status = os.waitpid(child, 0)
    connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    connection.close()
