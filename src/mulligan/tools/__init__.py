"""Tools of an agent: a toolbox, results that a model can act on, self-correction, delegation."""
