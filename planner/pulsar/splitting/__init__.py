"""Splitting: where a bundle is cut, and which bundles are cut automatically."""
