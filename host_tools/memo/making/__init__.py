"""Making a new set of portraits: `prompts`, the `painters` that follow them, what they made, and its `review`."""
