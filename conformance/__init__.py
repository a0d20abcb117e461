"""Conformance suite for PyTorch accelerator backends."""
