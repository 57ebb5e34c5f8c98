"""
Runs statements of Databricks with Spark: emulated_databricks.py PLAN; a plan is described in emulators.ts. Prints the answers as JSON.
"""

import json
import pathlib
import sys

from pyspark.sql import SparkSession

plan = json.loads(pathlib.Path(sys.argv[1]).read_text())
statements = [text.strip().rstrip(";") for text in plan["statements"]]
types = {
    "whole": "BIGINT",
    "text": "STRING",
    "instant": "TIMESTAMP",
    "naive": "TIMESTAMP_NTZ",
    "decimal": "DOUBLE",
    "json": "STRING",
}
settings = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # As in a warehouse of Databricks, but far from UTC, so that a time that loses its zone shows.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "Asia/Kolkata",
}
builder = SparkSession.builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
answers = []
for case in plan["cases"]:
    texts = spark.createDataFrame(case["rows"], ", ".join(f"{name} STRING" for name, _ in case["columns"]))
    typed = ", ".join(f"CAST({name} AS {types[kind]}) AS {name}" for name, kind in case["columns"])
    spark.sql(f"SELECT {typed} FROM {{given}}", given=texts).cache().createOrReplaceTempView(case["table"])
    answers.append(
        [
            [[None if value is None else str(value) for value in row] for row in spark.sql(statements[place]).collect()]
            for place in case["asked"]
        ]
    )
print(json.dumps(answers))
