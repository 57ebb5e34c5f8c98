"""Airbyte's own standard checks of a source over what its verbs printed: standard.py SPEC CATALOG READ (files of lines)."""

import json
import sys
import warnings

warnings.filterwarnings("ignore")

from airbyte_cdk.models import (  # noqa: E402
    AirbyteMessageSerializer,
    ConfiguredAirbyteCatalog,
    ConfiguredAirbyteStream,
    DestinationSyncMode,
    SyncMode,
    Type,
)
from airbyte_cdk.test.standard_tests._catalog_checks import find_catalog_problems  # noqa: E402
from airbyte_cdk.test.standard_tests._read_assertions import assert_read_records  # noqa: E402
from airbyte_cdk.test.standard_tests._spec_lint import assert_spec_is_valid  # noqa: E402


def messages(path: str, kind: Type) -> list:
    lines = (AirbyteMessageSerializer.load(json.loads(line)) for line in open(path))
    return [message for message in lines if message.type == kind]


[spec] = messages(sys.argv[1], Type.SPEC)
assert_spec_is_valid(spec.spec, connector_name="source-feedback")
[discovered] = messages(sys.argv[2], Type.CATALOG)
problems = {check.name: found for check, found in find_catalog_problems(discovered.catalog).items()}
assert not problems, problems
catalog = ConfiguredAirbyteCatalog(
    streams=[
        ConfiguredAirbyteStream(
            stream=stream, sync_mode=SyncMode.full_refresh, destination_sync_mode=DestinationSyncMode.append
        )
        for stream in discovered.catalog.streams
    ]
)
assert_read_records(
    records=messages(sys.argv[3], Type.RECORD),
    configured_catalog=catalog,
    require_records_per_stream=True,
    validate_schema=True,
)
print("RESULT all hold")
