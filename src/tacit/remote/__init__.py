"""The client of a server: what an analyst holds who never touches the data.

It needs nothing but the standard library and this package.
"""
