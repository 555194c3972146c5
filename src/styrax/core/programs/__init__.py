"""Programs as data: primitives and what is known of them, jaxprs, their checker, their texts."""
