"""Small libraries that show how larger ones can be built: layers of networks, and optimizers."""
