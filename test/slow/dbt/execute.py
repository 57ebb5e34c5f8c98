"""Executes SQL in a DuckDB file: execute.py FILE SQL."""

import sys

import duckdb

file, sql = sys.argv[1:]
duckdb.connect(file).execute(sql)
