"""From recorded runs to node-days in a store."""
