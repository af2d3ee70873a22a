"""The application as granian calls it, over RSGI.

Over WSGI a request would occupy a thread from its first byte on, so that a few slow uploads could occupy all threads.
Here the event loop of the web process reads each body under a deadline. A thread gets the request once it is complete.
"""
