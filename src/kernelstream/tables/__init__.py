"""What the columns of a table are and how they become features: one description for files, data frames, dicts and models."""
