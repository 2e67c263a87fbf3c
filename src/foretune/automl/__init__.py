"""Tables in, models out: a `Job` describes a fit and runs it.

Its rooms: `knowledge` (what past fits teach), `estimators` (pipelines) and `final_model` (the model
that is saved). Other modules enter `final_model` through `fit_final_model` and `Model` only.
"""
