"""Drawing embedded configurations in the plane."""

from foretune._base.arrays import Floats


def flatten_embeddings(embeddings: Floats, *, how: str = "tsne", seed: int = 0) -> Floats:
    """Return embeddings (n, latent) in the plane (n, 2), by `tsne` or `pca`."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if how == "pca":
        reducer = PCA(n_components=2, random_state=seed)
    else:
        perplexity = min(30.0, (len(embeddings) - 1) / 3)
        reducer = TSNE(perplexity=perplexity, init="pca", random_state=seed)
    flat: Floats = reducer.fit_transform(embeddings)
    return flat
