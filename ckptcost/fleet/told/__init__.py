"""A fleet's figures as a study and as statements."""
