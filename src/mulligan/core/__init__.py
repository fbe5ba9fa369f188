"""Everything that can be decided without looking at a clock, a die, a file or a socket."""
