"""Asking models about pictures: through OpenAI-compatible servers, local pipelines, and the zoo's own classifiers."""
