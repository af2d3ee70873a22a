"""The variants of an agent in the editor: values for some callers, with the conditions under which they hold."""
