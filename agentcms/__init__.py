"""The Django project of Agent CMS."""
