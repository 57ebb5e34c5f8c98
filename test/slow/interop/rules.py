"""The platform's own quality rules over folders laid out like its repository.

Arguments: folders, each with one connector. Prints one JSON object: folder -> rule -> null if it passes, else its message. Each rule that
applies to the connector's type is run whatever its language, since the platform passes over or refuses all languages but its own. Left out:
the rules that ask the network (links, version increment), and the look at Docker Hub.
"""

import contextlib
import functools
import importlib
import io
import json
import os
import pickle
import sys
import sysconfig
import types
from pathlib import Path

# The package imports its servers when it is imported itself; the rules need none of them, nor what they depend on.
home = Path(sysconfig.get_paths()["purelib"]) / "airbyte_ops_mcp"
for path in ["", "registry", "connector_qa/checks"]:
    module = types.ModuleType(".".join(["airbyte_ops_mcp", *filter(None, path.split("/"))]))
    module.__path__ = [str(home / path)]
    sys.modules[module.__name__] = module

rules = [
    rule
    for part in ("documentation", "metadata", "packaging", "assets", "security")
    for rule in importlib.import_module(f"airbyte_ops_mcp.connector_qa.checks.{part}").ENABLED_CHECKS
    if type(rule).__name__ != "CheckDocumentationLinks"
]
metadata = sys.modules["airbyte_ops_mcp.connector_qa.checks.metadata"]
metadata.ValidatorOptions = functools.partial(metadata.ValidatorOptions, disable_dockerhub_checks=True)

# Most folders have the same page, whose sections take seconds to compare.
documentation = sys.modules["airbyte_ops_mcp.connector_qa.checks.documentation.documentation"]
close_matches = functools.cache(documentation.get_close_matches)
documentation.get_close_matches = lambda word, possibilities: close_matches(word, tuple(possibilities))

from airbyte_ops_mcp.connector_ops import utils  # noqa: E402
from airbyte_ops_mcp.connector_qa.models import CheckStatus  # noqa: E402

# A connector parses its metadata again for each of some 350 questions, and a page again for each rule. The page is only read.
parse = functools.cache(lambda source, load=utils.yaml.safe_load: pickle.dumps(load(source)))
utils.yaml = types.SimpleNamespace(safe_load=lambda source: pickle.loads(parse(source)))
models = sys.modules["airbyte_ops_mcp.connector_qa.checks.documentation.models"]
models.documentation_node = functools.cache(models.documentation_node)


def message(rule, connector):
    try:
        result = rule._run(connector)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None if result.status is CheckStatus.PASSED else result.message


answers = {}
for folder in sys.argv[1:]:
    os.chdir(folder)
    [name] = os.listdir("airbyte-integrations/connectors")
    connector = utils.Connector(name)
    with contextlib.redirect_stdout(io.StringIO()):
        answers[folder] = {
            rule.name: message(rule, connector)
            for rule in rules
            if connector.connector_type in rule.applies_to_connector_types
        }
print(json.dumps(answers))
