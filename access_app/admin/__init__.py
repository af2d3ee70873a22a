"""Admin of users, memberships and API keys. Django registers model admins by importing this package.

Superusers may do everything. Other staff manage the members of their teams and their own API keys.
"""

from access_app.admin import api_keys, memberships, users

__all__ = ["api_keys", "memberships", "users"]
