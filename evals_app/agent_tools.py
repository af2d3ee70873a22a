"""The scorers that come with the application. Django imports this module, and it registers them."""

from evals_app.scorers import built_in

__all__ = ["built_in"]
