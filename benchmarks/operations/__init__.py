"""Single operations at single sizes, each under both engines: see `benchmarks/README.md`."""
