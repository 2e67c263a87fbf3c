"""DeepPipe: whole pipelines embedded, and new algorithms joining later."""
