"""Evidence in, Failure out."""
