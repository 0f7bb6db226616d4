"""A sweep as text, CSV, JSON, Parquet and HTML."""
