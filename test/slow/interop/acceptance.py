"""The acceptance tests of Airbyte's Python CDK over acceptance-test-config.yml; pytest runs them beside a copy of that file."""

import warnings

warnings.filterwarnings("ignore")

from airbyte_cdk.test.standard_tests.docker_base import DockerConnectorTestSuite  # noqa: E402


class TestConnector(DockerConnectorTestSuite):
    """Every test of the CDK that starts an image."""
