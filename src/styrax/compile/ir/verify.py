"""What holds of loops after each pass."""
def verify(body, builder, name): pass
