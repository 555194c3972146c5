"""Passes over operations and loops."""
