"""Past configurations in the space of today: what carries over, what is dropped or assumed."""
