"""Reads what a release wrote with the libraries of in-toto and CycloneDX: validate.py FOLDER. Exits 1 with what is wrong."""

import json
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement

folder = Path(sys.argv[1])
text = (folder / "provenance.json").read_text()
# Both refuse a member that the specification does not name.
statement = json_format.Parse(text, statement_pb2.Statement())
Statement.copy_from_pb(statement).validate()
json_format.ParseDict(json.loads(text)["predicate"], provenance_pb2.Provenance())

lists = sorted(folder.glob("*.sbom.json"))
for path in lists:
    error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(path.read_text())
    if error is not None:
        sys.exit(f"{path.name}: {error}")
print(f"{len(lists)} lists of parts and the statement of provenance meet their schemas")
sys.exit(0 if lists else "no list of parts")
