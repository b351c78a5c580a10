"""The verbs, shared by both front ends. They return domain results; documents are made of them
elsewhere."""
