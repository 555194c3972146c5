"""Loops, branches, and calls of programs with rules of their own."""
