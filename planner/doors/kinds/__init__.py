"""One file for each kind of output that an operator has."""
