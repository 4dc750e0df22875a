effect%ext [@attribute] A : int
