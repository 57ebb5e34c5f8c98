"""
Runs the statement of an audit on a DuckDB file, translated by sqlglot: translated_audit.py DIALECT STATEMENT FILE. Prints each bucket that differs.
What DuckDB lacks of the dialect is a macro of the same meaning.
"""

import pathlib
import sys

import duckdb
import sqlglot
from sqlglot import exp

dialect, path, file = sys.argv[1:]
connection = duckdb.connect(file)
connection.execute("SET TimeZone = 'UTC'")
for macro in (
    "conv(digits, base, target) AS CAST(CAST('0x' || digits AS BIGINT) AS VARCHAR)",
    "from_base(digits, base) AS CAST('0x' || digits AS BIGINT)",
    "strtol(digits, base) AS CAST('0x' || digits AS BIGINT)",
    "hex_number(digits) AS CAST('0x' || digits AS BIGINT)",
):
    connection.execute(f"CREATE OR REPLACE TEMP MACRO {macro}")


def replace_number(node):
    """Snowflake's number of hexadecimal digits, whose format sqlglot leaves out."""
    return exp.Anonymous(this="hex_number", expressions=[node.this]) if isinstance(node, exp.ToNumber) else node


statement = sqlglot.parse_one(pathlib.Path(path).read_text(), read=dialect).transform(replace_number)
for row in connection.execute(statement.sql(dialect="duckdb")).fetchall():
    print(row[0], row[1])
