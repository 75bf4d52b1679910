"""The jobs of the pipeline on a real cluster, all of it on this machine."""
