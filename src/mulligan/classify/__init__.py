"""Evidence in, Failure out: what went wrong, read from answers, exceptions and words."""
