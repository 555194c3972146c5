"""Reductions, cumulative and windowed ones, contractions and convolutions."""
