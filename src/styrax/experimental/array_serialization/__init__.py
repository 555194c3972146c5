"""Arrays spread over processes, written to storage and read back: the interface that checkpoint libraries ask for."""
