"""Flags: what they are, and the table of JAX's and our own."""

from . import config as config
