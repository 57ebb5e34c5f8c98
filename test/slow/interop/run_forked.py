"""Runs a program as a fork of serve_python.py, as if it were run here: run_forked.py SOCKET MODULE:FUNCTION NAME [ARGUMENT…]."""

import json
import os
import socket
import sys

path, entry, *arguments = sys.argv[1:]
command = {"entry": entry, "arguments": arguments, "cwd": os.getcwd(), "env": dict(os.environ)}
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(path)
    socket.send_fds(connection, [b" "], [0, 1, 2])
    connection.sendall(json.dumps(command).encode() + b"\n")
    answer = connection.recv(16)
sys.exit(int(answer or b"1"))
