"""Files that Foretune 0.1 (commit d30cd67) wrote. Later versions must open them."""
