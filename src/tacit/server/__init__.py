"""The server: analysts ask over HTTP, and never touch the data.

It needs ``pip install 'tacit[server]'``; nothing else in the package imports it but the commands.
"""
