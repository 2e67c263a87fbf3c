"""Tables in, models out: the main job, from a plan to a fitted model (`fit`).

Its rooms, each of which uses only those after it: `knowledge`, `collection`, `models`, `tables`.
"""
