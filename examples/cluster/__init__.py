"""The jobs of the pipeline on a real cluster that runs on this machine."""
