"""Pytrees: structures of containers, how they are taken apart, paths to their leaves."""
