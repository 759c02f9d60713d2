"""What a relay in front of a real server is made of, whatever the server speaks.

The open `lives` of a trial connect as `client`s. Each of their connections is a
`session`, with one of its own to the server, its `upstream`. What a protocol makes of
the messages in between is told by the service that is relayed.
"""
