"""Reads feedback every night, writes the report, and checks for alerts."""

import json
import subprocess

import dagster as dg

FOLDER = "/var/lib/feedback"


def run_feedback(*args: str) -> str:
    done = subprocess.run(["feedback", *args], cwd=FOLDER, stdout=subprocess.PIPE, text=True)
    if done.returncode == 0:
        return done.stdout
    if done.returncode == 75:
        raise dg.RetryRequested(max_retries=4, seconds_to_wait=600)
    raise dg.Failure(
        f"feedback {args[0]} has ended with {done.returncode}.",
        metadata={"output": done.stdout[-2000:]},
        allow_retries=False,
    )


@dg.asset
def reviews() -> dg.MaterializeResult:
    outcome = json.loads(run_feedback("sync", "--config", "config.json", "--db", "reviews.duckdb", "--json"))
    return dg.MaterializeResult(metadata={each["stream"]: each["records"] for each in outcome})


@dg.asset(deps=[reviews])
def report() -> None:
    run_feedback("status", "--db", "reviews.duckdb", "--max-age", "26h")
    run_feedback("report", "--db", "reviews.duckdb", "--out", "report.html")


@dg.asset_check(asset=reviews)
def critical_alerts() -> dg.AssetCheckResult:
    alerts = json.loads(run_feedback("query", "--db", "reviews.duckdb", "critical_alerts", "--format", "json"))
    return dg.AssetCheckResult(
        passed=alerts == [],
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{len(alerts)} alerts",
        metadata={"alerts": dg.MetadataValue.json(alerts[:100])},
    )


nightly = dg.define_asset_job("feedback", selection="*")
defs = dg.Definitions(
    assets=[reviews, report],
    asset_checks=[critical_alerts],
    jobs=[nightly],
    schedules=[dg.ScheduleDefinition(job=nightly, cron_schedule="15 2 * * *", execution_timezone="UTC")],
)
