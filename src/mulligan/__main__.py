"""`python -m mulligan` is the command."""

from mulligan.cli import script

script()
