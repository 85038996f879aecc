"""Where telemetry goes: what the roster says, what the variables say, and which counts."""

from typing import Any

import pytest

from callboard.core.errors import CallboardError
from callboard.core.roster import Telemetry
from callboard.core.roster_parse import parse_roster
from callboard.core.roster_yaml import RosterError
from callboard.core.telemetry import ExportPlan, plan_export, secret_headers, secrets_of

HERE = "http://localhost:4318"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def plan(env: dict[str, str], **settings: Any) -> ExportPlan | None:
    return plan_export(Telemetry(**settings), env, lambda text: text.replace("${secret:token}", "s3cret"))


def addresses(env: dict[str, str], **settings: Any) -> tuple[str, str] | None:
    found = plan(env, **settings)
    return (found.traces, found.metrics) if found is not None else None


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, None),
        ({"OTEL_SERVICE_NAME": "x", "OTEL_TRACES_SAMPLER": "always_on"}, None),
        ({ENDPOINT: "http://c:1/"}, ("http://c:1/v1/traces", "http://c:1/v1/metrics")),
        ({ENDPOINT: ""}, None),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:1/own"}, ("http://c:1/own", "")),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:1/own"}, ("", "http://c:1/own")),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, (f"{HERE}/v1/traces", "")),
        ({ENDPOINT: "http://c:1", "OTEL_METRICS_EXPORTER": "none"}, ("http://c:1/v1/traces", "")),
        ({ENDPOINT: "http://c:1", "OTEL_TRACES_EXPORTER": "console"}, ("", "http://c:1/v1/metrics")),
        ({ENDPOINT: "http://c:1", "OTEL_SDK_DISABLED": "TRUE"}, None),
        (
            {ENDPOINT: "http://c:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t:2/x"},
            ("http://t:2/x", "http://c:1/v1/metrics"),
        ),
    ],
)
def test_the_variables_ask(env: dict[str, str], expected: tuple[str, str] | None) -> None:
    assert addresses(env) == expected


def test_the_roster_asks() -> None:
    assert addresses({}, enabled=True) == (f"{HERE}/v1/traces", f"{HERE}/v1/metrics")
    assert addresses({}, endpoint="http://c:1/base/") == ("http://c:1/base/v1/traces", "http://c:1/base/v1/metrics")
    assert addresses({}, endpoint="http://c:1", traces=False) == ("", "http://c:1/v1/metrics")
    assert addresses({}, endpoint="http://c:1", traces=False, metrics=False) is None


def test_the_roster_counts_more() -> None:
    env = {ENDPOINT: "http://env:1", "OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    assert addresses(env, endpoint="http://c:1") == ("http://c:1/v1/traces", "http://c:1/v1/metrics")
    assert addresses({ENDPOINT: "http://env:1"}, enabled=False) is None
    assert addresses({ENDPOINT: "http://env:1"}, enabled=True) == ("http://env:1/v1/traces", "http://env:1/v1/metrics")


@pytest.mark.parametrize("name", ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"])
def test_another_protocol_is_refused(name: str) -> None:
    with pytest.raises(CallboardError) as caught:
        plan({ENDPOINT: "http://c:4317", name: "grpc"})
    assert caught.value.code == "telemetry-protocol"
    assert plan({ENDPOINT: "http://c:4318", name: "http/protobuf"}) is not None


def test_headers_have_their_secrets() -> None:
    found = plan({}, endpoint="http://c:1", headers={"Authorization": "Bearer ${secret:token}"})
    assert found is not None
    assert found.headers == (("Authorization", "Bearer s3cret"),)
    settings = Telemetry(endpoint="http://${secret:host}:1", headers={"A": "${secret:token}", "B": "${env:X}"})
    assert secrets_of(settings) == {"host", "token"}


def test_a_value_of_two_lines_is_refused_and_not_told() -> None:
    with pytest.raises(CallboardError) as caught:
        plan_export(Telemetry(enabled=True, headers={"A": "${secret:t}"}), {}, lambda text: text and "one\ntwo")
    assert caught.value.code == "entry-invalid"
    assert "two" not in caught.value.message


def test_bounds_come_from_the_variables() -> None:
    env = {
        "OTEL_METRIC_EXPORT_INTERVAL": "1500",
        "OTEL_BSP_SCHEDULE_DELAY": "250",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "7",
        "OTEL_BSP_MAX_QUEUE_SIZE": "70",
    }
    found = plan(env, enabled=True)
    assert found is not None
    assert (found.interval, found.delay, found.batch, found.queue) == (1.5, 0.25, 7, 70)
    found = plan(dict.fromkeys(env, "-1"), enabled=True)
    assert found is not None
    assert (found.interval, found.delay, found.batch, found.queue) == (60.0, 5.0, 512, 2048)
    found = plan(env, enabled=True, interval=30.0)
    assert found is not None
    assert found.interval == 30.0


def test_values_of_the_headers_in_the_variables_are_known_for_masking() -> None:
    env = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=abc, x=d e", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "t=z=1,,odd"}
    assert secret_headers(env) == ["abc", "d e", "z=1"]


@pytest.mark.parametrize(
    ("section", "field", "words"),
    [
        ("{endpoint: collector:4318}", "telemetry.endpoint", "http://"),
        ("{headers: {A: '${secret:}'}}", "telemetry.headers.A", "does not name a secret"),
        ("{headers: {A: '${TOKEN}'}}", "telemetry.headers.A", "${env:TOKEN}"),
        ("{headers: {'a b': c}}", "telemetry.headers.a b", "header"),
        ("{interval: 0}", "telemetry.interval", "at least 1"),
        ("{endpont: x}", "telemetry.endpont", "did you mean endpoint"),
        ("{enabled: maybe}", "telemetry.enabled", "true or false"),
    ],
)
def test_a_mistake_in_the_section_has_its_place(section: str, field: str, words: str) -> None:
    with pytest.raises(RosterError) as caught:
        parse_roster(f"telemetry: {section}\n")
    assert (caught.value.code, caught.value.data["field"]) == ("roster-invalid", field)
    assert words in caught.value.message


def test_the_whole_section_can_be_read() -> None:
    text = "telemetry: {enabled: true, endpoint: 'https://c', headers: {A: '${secret:t}'}, traces: no, interval: 5}\n"
    settings = parse_roster(text).settings.telemetry
    assert (settings.enabled, settings.endpoint, settings.traces, settings.interval) == (True, "https://c", False, 5)
