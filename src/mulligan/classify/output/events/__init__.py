"""Events of agent programs in their JSON streams, one file per program."""
