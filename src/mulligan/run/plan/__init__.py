"""Plans: phases of agents that are run, parked and resumed as one run."""
