"""Programs over several devices."""
