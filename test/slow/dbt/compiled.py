"""Parses compiled models in a dialect: compiled.py DIALECT FOLDER; prints the number of files, fails at the first that is not of it."""

import pathlib
import sys

import sqlglot

dialect, folder = sys.argv[1:]
files = sorted(pathlib.Path(folder).rglob("*.sql"))
for file in files:
    statement = sqlglot.parse_one(file.read_text(), dialect=dialect, error_level=sqlglot.ErrorLevel.RAISE)
    unknown = [call.name for call in statement.find_all(sqlglot.exp.Anonymous)]
    print(file.name, *unknown)
    if isinstance(statement, sqlglot.exp.Command):
        sys.exit(f"{file} is no query of {dialect}")
print("PARSED", len(files))
