"""One default: several surrogates, each believed as far as it puts the trials in order."""
