"""Reads streams into PostgreSQL with PyAirbyte, from the states that its tables hold: cache.py EXECUTABLE CONFIG STREAM…; the server is that of PGHOST."""

import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")

import airbyte as ab  # noqa: E402
from airbyte.caches import PostgresCache  # noqa: E402

executable, config, *streams = sys.argv[1:]
source = ab.get_source("source-feedback", config=json.load(open(config)), local_executable=executable)
source.select_streams(streams)
source.read(
    cache=PostgresCache(
        host=os.environ["PGHOST"],
        port=int(os.environ["PGPORT"]),
        username=os.environ["PGUSER"],
        password=os.environ["PGPASSWORD"],
        database=os.environ["PGDATABASE"],
        schema_name="pyairbyte",
    )
)
