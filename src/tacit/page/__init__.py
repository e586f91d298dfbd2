"""The page: what a server shows in a browser.

Pages are written by the server, and call the same functions as the HTTP endpoints do: who may see
or do something is decided there, and once.
"""

from tacit.page.views import pages

__all__ = ["pages"]
