"""
Runs the statement of an audit on a DuckDB file, translated by sqlglot: translated_audit.py DIALECT STATEMENT FILE. Prints each bucket or
review that differs, how, and in which columns.
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
    "get_array_length(list) AS CASE WHEN json_type(list) = 'ARRAY' THEN json_array_length(list) END",
):
    connection.execute(f"CREATE OR REPLACE TEMP MACRO {macro}")


def call(name, *arguments):
    return exp.Anonymous(this=name, expressions=list(arguments))


def replace(node):
    """What sqlglot leaves out, or does not know to be JSON."""
    if isinstance(node, exp.ToNumber):
        return call("hex_number", node.this)
    # Snowflake
    if isinstance(node, exp.ArraySize):
        return call("get_array_length", node.this)
    if dialect == "snowflake" and isinstance(node, exp.Cast) and isinstance(node.this, exp.JSONExtract):
        return call("json_extract_string", node.this.this, node.this.expression)
    # BigQuery prints no zeros behind a whole number.
    if isinstance(node, exp.DataType) and node.is_type("bigdecimal"):
        return exp.DataType.build("DECIMAL(38, 0)")
    # Redshift: the members of a column
    if isinstance(node, exp.Column) and len(node.parts) > 2:
        table, column, *members = (part.name for part in node.parts)
        return call("json_extract_string", exp.column(column, table), exp.Literal.string(".".join(["$", *members])))
    return node


def unwrap_variant(node):
    return node.this if isinstance(node, exp.ToVariant) else node


statement = sqlglot.parse_one(pathlib.Path(path).read_text(), read=dialect).transform(unwrap_variant).transform(replace)
for row in connection.execute(statement.sql(dialect="duckdb")).fetchall():
    print(row[0], row[1], *row[6:])
