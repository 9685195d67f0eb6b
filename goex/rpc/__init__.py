"""Generated from protos/ by `make protos`; `make check-protos` fails when it has drifted.

protoc writes absolute imports (`from goex.v1 import …`), so generation rewrites them to this package.
"""
