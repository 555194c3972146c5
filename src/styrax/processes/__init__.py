"""Programs that run in several processes: finding the others, talking to them, arrays and programs over all of them."""
