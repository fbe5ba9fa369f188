"""Configuration files: policies, packs, and the error messages of both."""
