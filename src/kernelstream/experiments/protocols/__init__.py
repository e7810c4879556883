"""The papers' protocols, one file a paper."""
