"""The default method: several models, weighted by how well each ranks the finished trials."""
