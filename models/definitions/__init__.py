"""Networks defined in PyTorch, for training and export; they need the `[export]` extra."""
