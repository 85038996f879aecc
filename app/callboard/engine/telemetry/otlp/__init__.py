"""OpenTelemetry: calls as spans and figures as metrics, sent as OTLP over HTTP. Imported where that is wanted."""
