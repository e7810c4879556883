"""The papers' experiments: their protocols, their figures, a runner that resumes, and a report."""
