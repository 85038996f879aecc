"""What is measured of calls, and where it goes: metrics, traces, OTLP."""
