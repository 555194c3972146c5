"""Types of values: dtypes and promotion, abstract values, effects, sizes; the words of annotations."""
