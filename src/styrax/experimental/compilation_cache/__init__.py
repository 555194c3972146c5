"""The cache of compiled programs on disk."""
