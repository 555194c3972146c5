"""Communication along named axes, and placement on devices."""
